"""A child process that performs jobs, seen from inside: it does what its worker sends it, and never outlives it.

What comes back is JSON: whatever a performer returns or raises, no object of its making reaches the worker.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import pickle
import select
import signal
import sys
import threading
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.spawn import prepare
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast
from weakref import WeakSet

from kizami.core.errors import ConfigurationError
from kizami.core.outcomes import Cancel, Snooze
from kizami.core.results import keep_result, shorten_error
from kizami.engine.context import JobContext, LeaseLost, enter
from kizami.engine.spawn import STARTING
from kizami.runtime import Runtime, SystemRuntime

if TYPE_CHECKING:
    from collections.abc import Callable

    from kizami.engine.performing import Work
    from kizami.store.protocol import ClaimedJob, Store

LOG_CHARACTERS_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class Order:
    """A job to perform. `work` finds its performer; the deadline is on the boot clock, in milliseconds."""

    work: Work
    job: ClaimedJob
    worker_id: str
    deadline_boot: int


class NoStore:
    """Stands for the store in a child process, which has no way to it."""

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse whatever is asked. Raises ConfigurationError."""
        raise ConfigurationError(
            f"The store ({name}) can't be reached from a performer that runs in a process.",
            remedy='Return the data and store it elsewhere, or run this performer with runs_in="thread".',
        )


def numbered(number: int, message: bytes | None) -> bytes:
    """Return what goes to a child: a pickled order with its number, or None, the end."""
    return number.to_bytes(8, "big") + (message or b"")


def main(line: int, life: int) -> None:
    """Do what the worker sends, one after the other, until it sends the end. Its end is this process's end.

    Both arguments are file descriptors.
    """
    die_with_the_worker(life)
    connection: Connection[Any, bytes] = Connection(line)
    os.set_inheritable(line, False)
    os.register_at_fork(after_in_child=connection.close)  # a fork that lives on must not hide this process's death
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave_it_to_the_worker)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (number,))
    inbox: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(connection, inbox), name="kizami-orders", daemon=True).start()
    child = _Child(connection, SystemRuntime())
    preparation, log_level = pickle.loads(inbox.get())  # noqa: S301 - from our own worker
    child.prepare(preparation)
    logging.basicConfig(level=log_level, format="%(message)s", handlers=[_ToWorker(child)], force=True)
    while len(message := inbox.get()) > len(numbered(0, None)):
        child.obey(int.from_bytes(message[:8], "big"), message[8:])
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # a performer may have closed or replaced it
                stream.flush()


def die_with_the_worker(life: int) -> None:
    """Have the kernel kill this process's group when the worker's end of a pipe closes, where it knows how to.

    Unlike a thread that reads, this needs no help of the interpreter, which one call into C may hold for ever.
    """
    os.set_inheritable(life, False)
    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(life, fcntl.F_SETOWN, -os.getpgid(0))
        fcntl.fcntl(life, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([life], [], [], 0)[0]:  # the worker was gone before
        os.killpg(os.getpgid(0), signal.SIGKILL)


def _listen(connection: Connection[Any, bytes], inbox: SimpleQueue[bytes]) -> None:
    """Take orders as bytes: reading them may raise, and this thread must see the worker's end whatever happens."""
    while True:
        try:
            inbox.put(connection.recv_bytes())
        except (EOFError, OSError):  # the worker is gone, even if by SIGKILL
            os.killpg(os.getpgid(0), signal.SIGKILL)


def _leave_it_to_the_worker(number: int, frame: object) -> None:
    """Ignore a signal meant for the whole service: the worker gives its jobs their grace time."""


class _Child:
    """The performers that this process has loaded, and the line to its worker."""

    def __init__(self, connection: Connection[Any, bytes], runtime: Runtime) -> None:
        self._connection = connection
        self._runtime = runtime
        self._sending = threading.Lock()
        self._pid = os.getpid()
        self._number = 0
        self._earlier: WeakSet[threading.Thread] = WeakSet()  # whatever they do, they don't do it for this order
        self._why_unready: str | None = None
        self._loaded: dict[Work, Callable[[str, JobContext], object]] = {}

    @property
    def is_here(self) -> bool:
        """Tell whether the calling process is the child itself, not one that a performer has forked from it."""
        return os.getpid() == self._pid

    def prepare(self, preparation: dict[str, Any]) -> None:
        """Import the program's main module, as far as it isn't guarded; an error is the answer to the first order."""
        try:
            prepare(preparation)
        except BaseException as error:  # noqa: BLE001 - importing users' code may raise anything
            self._why_unready = f"the main module could not be imported: {shorten_error(error)}"
        os.environ.pop(STARTING, None)  # what performers start is no child of ours

    def obey(self, number: int, message: bytes) -> None:
        """Do one order and tell how it ended. A process forked by the performer ends here, and answers nobody."""
        self._number = number
        self._earlier = WeakSet(set(threading.enumerate()) - {threading.current_thread()})
        try:
            what = pickle.loads(message)  # noqa: S301 - from our own worker
            do: Callable[[], dict[str, Any]] = partial(self._perform if isinstance(what, Order) else self._load, what)
            answer = copy_context().run(do)
        except LeaseLost:
            answer = {"end": "lease_lost"}
        except BaseException as error:  # noqa: BLE001 - whatever a performer raises is its attempt's failure
            answer = {"end": "failed", "text": shorten_error(error)}
        if not self.is_here or not self._say(number, answer):
            os._exit(1)  # silent, it would only be killed at the deadline

    def _load(self, work: Work) -> dict[str, Any]:
        """Import a performer."""
        if self._why_unready is not None:
            return {"end": "failed", "text": self._why_unready}
        if work not in self._loaded:
            self._loaded[work] = work.load()
        return {"end": "loaded"}

    def _perform(self, order: Order) -> dict[str, Any]:
        """Call the performer."""
        number, deadline_boot = self._number, order.deadline_boot
        clock, timeout_ms = self._runtime.clock, order.job.options.timeout_ms

        def move_deadline(progress: float | None) -> None:
            nonlocal deadline_boot
            deadline_boot = clock.boot_ms() + timeout_ms
            self._say(number, {"progress": progress})

        context = JobContext(
            order.job,
            cast("Store", NoStore()),
            self._runtime,
            order.worker_id,
            _move_deadline=move_deadline,
            _deadline_ms=lambda: clock.now_ms() + deadline_boot - clock.boot_ms(),
        )
        enter(context)
        return _as_data(self._loaded[order.work](order.job.payload, context))

    def say_log(self, name: str, level: int, text: str) -> None:
        """Send a log record, from any thread, in the name of the job in which it was made, as far as that is known."""
        number = 0 if threading.current_thread() in self._earlier else self._number
        self._say(number, {"log": [name, level, text[:LOG_CHARACTERS_MAX]]})

    def _say(self, number: int, message: dict[str, Any]) -> bool:
        """Tell the worker something about an order, from any thread; in a forked process, nothing.

        Returns whether it went: a performer may have closed the line.
        """
        if not self.is_here:
            return False  # before the lock: another thread may have held it when this process was forked
        text = json.dumps({**message, "number": number, "pid": self._pid}).encode()
        with self._sending, suppress(OSError):
            self._connection.send_bytes(text)
            return True
        return False


class _ToWorker(logging.Handler):
    """Sends log records to the worker; those of forked processes go to the standard error output."""

    def __init__(self, child: _Child) -> None:
        super().__init__()
        self._child = child

    def emit(self, record: logging.LogRecord) -> None:
        """Send one; what can't be sent doesn't harm the job."""
        try:
            text = self.format(record)
            if self._child.is_here:
                self._child.say_log(record.name, record.levelno, text)
            else:
                sys.stderr.write(f"{text}\n")
        except Exception:  # noqa: BLE001 - as handlers do
            self.handleError(record)


def _as_data(value: object) -> dict[str, Any]:
    match value:
        case Cancel(reason):
            return {"end": "cancelled", "reason": shorten_error(reason)}
        case Snooze():
            return {"end": "snoozed", "delay_ms": value.delay_ms}
    kept = keep_result(value)
    return {"end": "completed", "text": kept.text, "note": kept.note}
