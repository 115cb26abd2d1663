"""A child process that performs jobs, seen from its worker."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import weakref
from contextlib import suppress
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Final

from kizami.core.outcomes import Cancel, Snooze
from kizami.core.results import KeptResult
from kizami.engine.child_process import Order, serve
from kizami.engine.context import LeaseLost

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

    from kizami.engine.performing import Work

LOOK_SECONDS: Final = 1.0
"""How often a child that says nothing is looked at: one that forked may die without closing its line."""
END_SECONDS: Final = 5.0


class ChildFailedError(Exception):
    """What a performer raised in a child process, as text."""


class ChildDiedError(Exception):
    """A child process ended in the middle of its work."""


class Child:
    """One child process. It performs one job at a time; all but `kill` block, and are called in threads."""

    def __init__(self) -> None:
        self.performed = 0
        self.is_killed = False
        self._loaded: set[Work] = set()
        self._lock = threading.Lock()
        self._process: SpawnProcess | None = None
        self._line: Connection | None = None

    def has_loaded(self, work: Work) -> bool:
        """Tell whether it has performed this work before and need not import it."""
        return work in self._loaded

    def load(self, work: Work) -> None:
        """Get ready for some work: start, and import its performer. Raises ChildFailedError and ChildDiedError."""
        if self._process is None:
            self._start()
        self._converse(work, lambda _: None)  # also of one that knows it: it may have died while it had nothing to do
        self._loaded.add(work)

    def perform(self, order: Order, heard: Callable[[float | None], None]) -> object:
        """Perform a job; return a KeptResult, Snooze or Cancel. Calls `heard` with the progress of each heartbeat.

        Raises ChildFailedError, ChildDiedError and LeaseLost.
        """
        self.performed += 1
        return self._converse(order, heard)

    def kill(self) -> None:
        """End the process and what it started, at once."""
        with self._lock:
            self.is_killed = True
            if self._process is not None and self._process.pid is not None:
                _kill_group(self._process.pid)

    def stop(self) -> None:
        """Let an idle process end by itself; kill it if it doesn't."""
        if self._process is None or self._line is None:
            return
        with suppress(OSError):
            self._line.send(None)
        self._process.join(END_SECONDS)
        if self._process.is_alive():
            self.kill()
            self._process.join()
        self._line.close()

    def _start(self) -> None:
        spawning = get_context("spawn")  # a fork would copy locks that other threads hold
        ours, theirs = spawning.Pipe()
        process = spawning.Process(target=serve, args=(theirs, logging.getLogger().level), name="kizami-child")
        with self._lock:
            if self.is_killed:
                raise ChildDiedError("the child process was not started: its job was given up")
            process.start()
            assert process.pid is not None  # noqa: S101 - it has just been started
            weakref.finalize(self, _kill_group, process.pid)  # also at the interpreter's exit
            self._process, self._line = process, ours
        theirs.close()  # the child's own end is then the only one: when it dies, ours tells

    def _converse(self, message: Work | Order, heard: Callable[[float | None], None]) -> object:
        assert self._line is not None  # noqa: S101 - it was started by `load`
        try:
            self._line.send(message)
            while "end" not in (answer := self._receive(self._line)):
                _pass_on(answer, heard)
        except (EOFError, OSError) as error:
            raise ChildDiedError(self._how_it_died()) from error
        return _as_value(answer)

    def _receive(self, line: Connection) -> dict[str, Any]:
        while not line.poll(LOOK_SECONDS):
            if self._process is None or not self._process.is_alive():
                if line.poll():
                    break
                raise EOFError
        answer: dict[str, Any] = json.loads(line.recv_bytes())
        return answer

    def _how_it_died(self) -> str:
        """Return the reason, with the process buried."""
        assert self._process is not None  # noqa: S101 - it was started by `load`
        self.kill()
        self._process.join()
        code = self._process.exitcode or 0
        if code < 0:
            name = signal.Signals(-code).name
            why = "killed from outside, or for want of memory" if -code == signal.SIGKILL else "crashed or was killed"
            return f"its process ended by {name}: it was {why}"
        return f"its process ended by itself with exit code {code}"


def _pass_on(said: dict[str, Any], heard: Callable[[float | None], None]) -> None:
    """Act on what a child says before its end: a heartbeat, or a log record."""
    match said:
        case {"log": [str(name), int(level), str(text)]}:
            logging.getLogger(name).log(level, "%s", text)
        case {"progress": progress}:
            heard(progress)


def _as_value(answer: dict[str, Any]) -> object:
    match answer:
        case {"end": "completed", "text": text, "note": note}:
            return KeptResult(text, note)
        case {"end": "snoozed", "delay_ms": delay_ms}:
            return Snooze(delay_ms)
        case {"end": "cancelled", "reason": reason}:
            return Cancel(reason)
        case {"end": "lease_lost"}:
            raise LeaseLost
        case {"end": "failed", "text": text}:
            raise ChildFailedError(text)
        case _:
            return None


def _kill_group(pid: int) -> None:
    """Kill a child with what it started, unless it is buried: its number may be somebody else's by then."""
    if hasattr(os, "waitid"):
        try:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
    for kill in (os.killpg, os.kill):  # it may be too young to have a group of its own
        with suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
