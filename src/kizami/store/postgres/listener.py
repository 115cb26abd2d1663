"""Waking other processes and being woken: one connection that listens, and that tells of our own changes.

A notification is a hint and carries nothing; one that is lost is made good by the next look at the clock. It isn't part
of any transaction (committing with one takes a lock on the whole server), and many changes make one notification.
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

if TYPE_CHECKING:
    from collections.abc import Callable

    from kizami.store.postgres.place import Place

log = logging.getLogger("kizami.store")
CHANNEL: Final = "kizami_changes"
GATHER_SECONDS: Final = 0.005
"""How long changes are gathered before others are told of them."""
POLL_SECONDS: Final = 0.5
"""How often to look where a pooler swallows notifications."""
AGAIN_SECONDS: Final = 2.0


class Listener:
    """A thread that calls `wake` when another process changed something, and tells others when asked to."""

    def __init__(self, place: Place, wake: Callable[[], None]) -> None:
        self._place = place
        self._wake = wake
        self._stopped = threading.Event()
        self._owes = threading.Event()
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

    def tell_others(self) -> None:
        """Have other processes woken soon. Many calls are one notification."""
        if not self._owes.is_set():
            self._owes.set()
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
                self._wake()
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
        self._wake()  # whatever happened before this connection listened
        while not self._stopped.is_set():
            heard = self._wait(connection, POLL_SECONDS if polling else None)
            if heard and (polling or _is_news(connection)):
                self._wake()
            if self._owes.is_set():
                self._stopped.wait(GATHER_SECONDS)
                self._owes.clear()
                _notify(connection)

    def _wait(self, connection: Connection, seconds: float | None) -> bool:
        """Wait for the database or the bell; True when it was not the bell alone."""
        with selectors.DefaultSelector() as selector:
            selector.register(connection, selectors.EVENT_READ)
            selector.register(self._bell, selectors.EVENT_READ)
            ready = [key.fileobj for key, _ in selector.select(seconds)]
        if self._bell in ready:
            self._bell.recv(4096)
        return ready != [self._bell]


def _notify(connection: Connection) -> None:
    """Notify the others. A hint needs no disk, and would make the commits of jobs wait for theirs."""
    with connection.pipeline():
        connection.execute("BEGIN")
        connection.execute("SET LOCAL synchronous_commit = off")
        connection.execute(f"NOTIFY {CHANNEL}")
        connection.execute("COMMIT")


def _is_news(connection: Connection) -> bool:
    """Tell whether any of the notifications that have come is another process's: ours come back to us as well."""
    told_by = {notification.pid for notification in connection.notifies(timeout=0)}
    return bool(told_by - {connection.info.backend_pid})
