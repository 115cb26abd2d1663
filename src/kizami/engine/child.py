"""A child process that performs jobs, seen from its worker."""

from __future__ import annotations

import json
import logging
import pickle
import signal
import threading
import weakref
from contextlib import suppress
from contextvars import Context
from datetime import timedelta
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, Any, Final

from kizami.core.outcomes import Cancel, Snooze
from kizami.core.results import KeptResult
from kizami.engine.child_process import Order, numbered
from kizami.engine.context import LeaseLost
from kizami.engine.spawn import start

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

    from kizami.engine.performing import Work
    from kizami.engine.spawn import Spawned

log = logging.getLogger("kizami.worker")
LOOK_SECONDS: Final = 1.0
"""How often a child that says nothing is looked at: one that forked may die without closing its line."""
END_SECONDS: Final = 5.0
"""How long an end is waited for, first one by itself, then one by SIGKILL: a process may hang in the kernel."""


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
        self._talking = threading.Lock()  # whoever holds it may use the line, and nobody closes it
        self._spawned: Spawned | None = None
        self._is_buried = False
        self._number = 0
        self._ignored: object = None

    def has_loaded(self, work: Work) -> bool:
        """Tell whether it has performed this work before and need not import it."""
        return work in self._loaded

    def load(self, work: Work) -> None:
        """Get ready for some work: start, and import its performer. Raises ChildFailedError and ChildDiedError."""
        if self._spawned is None:
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
        """End the process and what it started, at once. Its thread, or `stop`, buries it."""
        with self._lock:
            self.is_killed = True
            if self._spawned is not None and not self._is_buried:
                self._spawned.kill_group()

    def stop(self) -> None:
        """Let an idle process end by itself; kill it if it doesn't, and what it leaves behind in any case."""
        with self._talking:
            spawned = self._spawned
            if spawned is None or spawned.line.closed:
                return
            if not self.is_killed:
                with suppress(EOFError, OSError):
                    spawned.line.send_bytes(numbered(0, None))
                    while spawned.line.poll(END_SECONDS):
                        spawned.line.recv_bytes()  # to its end; what it still says is nobody's
            self._bury(spawned)

    def _start(self) -> None:
        with self._lock:
            if self.is_killed:
                raise ChildDiedError("the child process was not started: its job was given up")
            self._spawned = start(logging.getLogger().level)
            weakref.finalize(self, self._spawned.abandon)  # also at the interpreter's exit

    def _converse(self, message: Work | Order, heard: Callable[[float | None], None]) -> object:
        with self._talking:
            spawned = self._spawned
            assert spawned is not None  # noqa: S101 - it was started by `load`
            if self._is_buried:
                raise ChildDiedError("its process had ended before")
            self._number += 1
            try:
                spawned.line.send_bytes(numbered(self._number, pickle.dumps(message)))
                while "end" not in (answer := self._next_answer(spawned)):
                    _pass_on(answer, heard)
                return _as_value(answer)
            except (EOFError, OSError) as error:
                raise ChildDiedError(_how_it_died(self._bury(spawned))) from error
            except (ValueError, TypeError, RecursionError, pickle.PicklingError) as error:
                self._bury(spawned)
                raise ChildDiedError(
                    f"its process was killed: what went over its line made no sense ({error})"
                ) from error

    def _next_answer(self, spawned: Spawned) -> dict[str, Any]:
        """Return the next thing said about this order by the child itself; the rest is not this job's."""
        while True:
            answer = _receive(spawned)
            if (answer["number"], answer["pid"]) == (self._number, spawned.process.pid):
                return answer
            if "log" in answer:
                Context().run(_pass_on, answer, lambda _: None)  # not in the name of this job
            elif answer["number"] != self._ignored:  # once is enough: there may be a thousand a second
                self._ignored = answer["number"]
                said = "an answer" if "end" in answer else "a heartbeat"
                text = "child process %s: %s for its order %s came from process %s during order %s and is ignored"
                log.warning(text, spawned.process.pid, said, answer["number"], answer["pid"], self._number)

    def _bury(self, spawned: Spawned) -> int | None:
        """Kill what is left of its group, take note of its end, and return its exit code."""
        with self._lock:
            self.is_killed = True
            if not self._is_buried:
                spawned.kill_group()
            self._is_buried = True
        with suppress(TimeoutExpired):
            spawned.process.wait(END_SECONDS)
        spawned.close()
        return spawned.process.returncode


def _receive(spawned: Spawned) -> dict[str, Any]:
    line: Connection = spawned.line
    while not line.poll(LOOK_SECONDS):
        if spawned.is_dead() and not line.poll():
            raise EOFError
    answer = json.loads(line.recv_bytes())
    if not isinstance(answer, dict) or not {"number", "pid"} <= answer.keys():
        raise ValueError("no message of a child process")
    return answer


def _how_it_died(code: int | None) -> str:
    if code is None:
        return f"its process was killed and has not ended within {END_SECONDS} s"
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
        case {"end": "loaded"}:
            return None
        case {"end": "completed", "text": text, "note": note}:
            return KeptResult(text, note)
        case {"end": "snoozed", "delay_ms": delay_ms}:
            return Snooze(timedelta(milliseconds=delay_ms))
        case {"end": "cancelled", "reason": reason}:
            return Cancel(reason)
        case {"end": "lease_lost"}:
            raise LeaseLost
        case {"end": "failed", "text": text}:
            raise ChildFailedError(text)
        case _:
            raise ValueError("no end of a job")
