"""Waking other processes and being woken: one connection that listens, and that tells of our own changes.

A notification is a hint and carries only a topic; one that is lost is made good by the next look at the clock. It isn't
part of any transaction (committing with one takes a lock on the whole server), and many changes make one notification.
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
from typing import TYPE_CHECKING, Final

import psycopg

from kizami.core.errors import StoreError
from kizami.store.postgres.connection import Connection, connect, is_pooled
from kizami.store.protocol.store import ALL_TOPICS, Topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from kizami.store.postgres.place import Place

log = logging.getLogger("kizami.store")
CHANNEL: Final = "kizami_changes"
GATHER_SECONDS: Final = 0.005
"""Others are told at once of the first change, then of all that come within so long together."""
POLL_SECONDS: Final = 0.5
"""How often to look where a pooler swallows notifications."""
AGAIN_SECONDS: Final = 2.0


class Listener:
    """A thread that calls `wake` when another process changed something, and tells others when asked to."""

    def __init__(self, place: Place, wake: Callable[[tuple[Topic, ...]], None]) -> None:
        self._place = place
        self._wake = wake
        self._stopped = threading.Event()
        self._owed: set[Topic] = set()
        self._lock = threading.Lock()
        self._bell, self._rope = socket.socketpair()
        self._bell.setblocking(False)
        self._rope.setblocking(False)
        self._thread = threading.Thread(target=self._serve, name="kizami-listener", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """End; waits for the thread."""
        self._stopped.set()
        self._ring()
        self._thread.join()
        self._bell.close()
        self._rope.close()

    def tell_others(self, topics: tuple[Topic, ...]) -> None:
        """Have other processes woken soon. Many calls are one notification."""
        with self._lock:
            rings = not self._owed
            self._owed.update(topics)
        if rings:
            self._ring()

    def _ring(self) -> None:
        try:
            self._rope.send(b"!")
        except OSError:
            return  # it rings already, or has ended

    def _serve(self) -> None:
        said = False
        while not self._stopped.is_set():
            try:
                connection = connect(self._place)
            except StoreError as error:
                if not said:
                    log.warning("no changes of other processes are heard until it is back: %s", error)
                said = True
                self._wake(ALL_TOPICS)
                self._stopped.wait(AGAIN_SECONDS)
                continue
            said = False
            try:
                self._listen(connection)
            except (psycopg.Error, OSError) as error:
                log.info("the connection that listens was lost: %s", error)
            finally:
                connection.close()

    def _listen(self, connection: Connection) -> None:
        polling = is_pooled(connection)
        if polling:
            log.info("a pooler stands between: changes of other processes are looked for every %s s", POLL_SECONDS)
        else:
            connection.execute(f"LISTEN {CHANNEL}")
        self._wake(ALL_TOPICS)  # whatever happened before this connection listened
        while not self._stopped.is_set():
            heard = self._wait(connection, self._bell, POLL_SECONDS if polling else None)
            if heard and polling:
                self._wake(ALL_TOPICS)
            elif heard:
                self._pass_on(connection)
            if owed := self._take_owed():
                _notify(connection, owed)
                if self._wait(connection, None, GATHER_SECONDS):
                    self._pass_on(connection)

    def _pass_on(self, connection: Connection) -> None:
        """Wake whoever waits for what another process changed."""
        if news := _news(connection):
            self._wake(news)

    def _take_owed(self) -> set[Topic]:
        with self._lock:
            owed, self._owed = self._owed, set()
        return owed

    @staticmethod
    def _wait(connection: Connection, bell: socket.socket | None, seconds: float | None) -> bool:
        """Wait for the database or the bell; True when it was not the bell alone."""
        with selectors.DefaultSelector() as selector:
            selector.register(connection, selectors.EVENT_READ)
            if bell is not None:
                selector.register(bell, selectors.EVENT_READ)
            ready = [key.fileobj for key, _ in selector.select(seconds)]
        if bell is not None and bell in ready:
            bell.recv(4096)
        return ready != [bell]


def _notify(connection: Connection, topics: set[Topic]) -> None:
    """Notify the others. A hint needs no disk, and would make the commits of jobs wait for theirs."""
    with connection.pipeline():
        connection.execute("BEGIN")
        connection.execute("SET LOCAL synchronous_commit = off")
        for topic in topics:
            connection.execute(f"NOTIFY {CHANNEL}, '{topic}'")
        connection.execute("COMMIT")


def _news(connection: Connection) -> tuple[Topic, ...]:
    """Return what the notifications that have come are about, but for our own, which come back to us as well."""
    own = connection.info.backend_pid
    told = {notification.payload for notification in connection.notifies(timeout=0) if notification.pid != own}
    return tuple(topic for topic in Topic if topic in told)
