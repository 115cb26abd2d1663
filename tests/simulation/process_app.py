"""Performers for child processes: they must be found by name in a module."""

from __future__ import annotations

import gc
import logging
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from kizami import Cancel, JobContext, Kizami, Snooze, Tick, current_job

app = Kizami("decorated")


@app.performer(runs_in="process")
def decorated(payload: int) -> int:
    return payload * 2


@app.performer(runs_in="process")
class Adder:
    def perform(self, payload: list[int]) -> int:
        return sum(payload)


class TrickyError(Exception):
    """Can be pickled, but not back."""

    def __init__(self, first: object, second: object) -> None:
        super().__init__("tricky")
        self.kept = (first, second, threading.Lock())


def pid(ctx: JobContext) -> int:
    assert current_job() is ctx
    return os.getpid()


def facts(payload: str, ctx: JobContext) -> list[Any]:
    return [payload, ctx.job_id, ctx.attempt, ctx.idempotency_key, ctx.deadline.timestamp() * 1000]


def local_day(tick: Tick) -> str:
    return f"{tick.local_date} {tick.zone.name}"


def logs(ctx: JobContext) -> None:
    logging.getLogger("shop").warning("from %s", ctx.job_id)
    logging.getLogger("shop").debug("not wanted")


def beats(payload: int, ctx: JobContext) -> str:
    for step in range(payload):
        threading.Event().wait(0.2)
        ctx.heartbeat(step / payload)
    return "alive to the end"


def forever(payload: str) -> None:
    """Note its own number and that of a process it starts, and never return."""
    started = subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"])
    Path(payload).write_text(f"{os.getpid()} {started.pid}", encoding="utf-8")
    while True:
        threading.Event().wait()


def beats_on(ctx: JobContext) -> int:
    """Return at once, and leave a thread that beats and logs in this job's name."""

    def beat() -> None:
        while True:
            threading.Event().wait(0.1)
            ctx.heartbeat(0.77)
            logging.getLogger("shop").warning("left behind")

    threading.Thread(target=beat, daemon=True).start()
    return os.getpid()


def forks_on(payload: float) -> int:
    """Return in two processes, in the forked one later."""
    if os.fork() == 0:
        threading.Event().wait(payload)
    return os.getpid()


def waits(payload: float) -> int:
    threading.Event().wait(payload)
    return os.getpid()


def forks_and_dies(payload: str) -> None:
    """Die, and leave a fork that holds all that a fork can hold."""
    forked = os.fork()
    if forked == 0:
        threading.Event().wait(600)
    Path(payload).write_text(f"{os.getpid()} {forked}", encoding="utf-8")
    os._exit(3)


def leaves_behind(payload: str) -> None:
    started = subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait(600)"])
    Path(payload).write_text(f"{os.getpid()} {started.pid}", encoding="utf-8")


def never_lets_go(payload: str) -> None:
    """Start a process, then hold the interpreter's lock for hours in one call into C."""
    started = subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait(600)"])
    Path(payload).write_text(f"{os.getpid()} {started.pid}", encoding="utf-8")
    re.match(r"(a+)+$", "a" * 48 + "b")


def inherits() -> list[Any]:
    """Return what a process started from here would inherit, and what its standard input has."""
    numbers = [int(path.name) for path in Path("/proc/self/fd").iterdir()]
    passed_on = []
    for number in numbers:
        with suppress(OSError):  # the one that listed them
            passed_on += [number] if number > 2 and os.get_inheritable(number) else []
    blocked = [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())]
    return [passed_on, os.read(0, 1).decode(), blocked]


def shuts_its_output() -> int:
    sys.stdout.close()
    return os.getpid()


def shuts_everything() -> None:
    os.closerange(3, 256)


class Unreadable:
    """Can be pickled, but raises when it is read."""

    def load(self) -> Callable[[str, JobContext], object]:
        raise NotImplementedError

    def __reduce__(self) -> tuple[Any, ...]:
        return raise_tricky, ()


@dataclass(frozen=True)
class Babbler:
    """Says something over the line of its child, past the one who may."""

    text: str

    def load(self) -> Callable[[str, JobContext], object]:
        for found in gc.get_objects():
            if isinstance(found, Connection) and not found.closed:
                found.send_bytes(self.text.encode())
        return lambda payload, _: payload


def raise_with_a_cause() -> object:
    try:
        return int("one")
    except ValueError as error:
        raise RuntimeError("no\ud800") from error


def raise_tricky() -> NoReturn:
    raise TrickyError(1, 2)


ENDS: dict[str, Callable[[], object]] = {
    "exit": lambda: os._exit(3),
    "sys.exit": lambda: sys.exit(4),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "tricky": raise_tricky,
    "cause": raise_with_a_cause,
    "snooze": lambda: Snooze(timedelta(minutes=10)),
    "cancel": lambda: Cancel("enough"),
    "object": object,
    "store": lambda: current_job().store.jobs,
    "big": lambda: "x" * 10_000_000,
    "generator": lambda: (each for each in "work"),
}


def ends(payload: str) -> object:
    return ENDS[payload]()
