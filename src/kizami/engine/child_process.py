"""A child process that performs jobs, seen from inside: it does what its worker sends it, and never outlives it.

What comes back is JSON: whatever a performer returns or raises, no object of its making reaches the worker.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from contextvars import copy_context
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NoReturn, cast

from kizami.core.errors import ConfigurationError
from kizami.core.outcomes import Cancel, Snooze
from kizami.core.results import keep_result, shorten_error
from kizami.engine.context import JobContext, LeaseLost, enter
from kizami.runtime import Runtime, SystemRuntime

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

    from kizami.engine.performing import Work
    from kizami.store.protocol import ClaimedJob, Store


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


def serve(connection: Connection, log_level: int) -> None:
    """Do what the worker sends, one after the other, until it sends None. Its end is this process's end.

    Log records from `log_level` on go to the worker, which has the handlers.
    """
    os.setsid()  # a group of its own: so that it is killed together with what it started
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave_it_to_the_worker)
    inbox: SimpleQueue[Work | Order | None] = SimpleQueue()
    threading.Thread(target=_listen, args=(connection, inbox), name="kizami-orders", daemon=True).start()
    child = _Child(connection, SystemRuntime())
    logging.basicConfig(level=log_level, format="%(message)s", handlers=[_ToWorker(child)], force=True)
    while (message := inbox.get()) is not None:
        copy_context().run(child.perform if isinstance(message, Order) else child.load, cast("Any", message))
        sys.stdout.flush()
        sys.stderr.flush()


def _listen(connection: Connection, inbox: SimpleQueue[Any]) -> None:
    while True:
        try:
            inbox.put(connection.recv())
        except (EOFError, OSError):  # the worker is gone, even if by SIGKILL
            os.killpg(os.getpgid(0), signal.SIGKILL)


def _leave_it_to_the_worker(number: int, frame: object) -> None:
    """Ignore a signal meant for the whole service: the worker gives its jobs their grace time."""


class _Child:
    """The performers that this process has loaded, and the line to its worker."""

    def __init__(self, connection: Connection, runtime: Runtime) -> None:
        self._connection = connection
        self._runtime = runtime
        self._sending = threading.Lock()
        self._loaded: dict[Work, Callable[[str, JobContext], object]] = {}

    def load(self, work: Work) -> None:
        """Import a performer."""
        try:
            if work not in self._loaded:
                self._loaded[work] = work.load()
        except BaseException as error:  # noqa: BLE001 - importing users' code may raise anything
            self.send(end="failed", text=shorten_error(error))
        else:
            self.send(end="loaded")

    def perform(self, order: Order) -> None:
        """Call the performer and tell how it ended."""
        deadline_boot = order.deadline_boot
        clock, timeout_ms = self._runtime.clock, order.job.options.timeout_ms

        def move_deadline(progress: float | None) -> None:
            nonlocal deadline_boot
            deadline_boot = clock.boot_ms() + timeout_ms
            self.send(progress=progress)

        context = JobContext(
            order.job,
            cast("Store", NoStore()),
            self._runtime,
            order.worker_id,
            _move_deadline=move_deadline,
            _deadline_ms=lambda: clock.now_ms() + deadline_boot - clock.boot_ms(),
        )
        enter(context)
        try:
            answer = _as_data(self._loaded[order.work](order.job.payload, context))
        except LeaseLost:
            answer = {"end": "lease_lost"}
        except BaseException as error:  # noqa: BLE001 - whatever a performer raises is its attempt's failure
            answer = {"end": "failed", "text": shorten_error(error)}
        self.send(**answer)

    def send(self, **message: Any) -> None:
        """Tell the worker something; from any thread."""
        with self._sending:
            self._connection.send_bytes(json.dumps(message).encode())


class _ToWorker(logging.Handler):
    """Sends log records to the worker."""

    def __init__(self, child: _Child) -> None:
        super().__init__()
        self._child = child

    def emit(self, record: logging.LogRecord) -> None:
        """Send one; what can't be sent doesn't harm the job."""
        try:
            self._child.send(log=[record.name, record.levelno, self.format(record)])
        except Exception:  # noqa: BLE001 - as handlers do
            self.handleError(record)


def _as_data(value: object) -> dict[str, Any]:
    match value:
        case Cancel(reason):
            return {"end": "cancelled", "reason": shorten_error(reason)}
        case Snooze(delay_ms):
            return {"end": "snoozed", "delay_ms": delay_ms}
    kept = keep_result(value)
    return {"end": "completed", "text": kept.text, "note": kept.note}
