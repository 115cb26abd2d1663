"""Performers for child processes: they must be found by name in a module."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
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
    "snooze": lambda: Snooze(600_000),
    "cancel": lambda: Cancel("enough"),
    "object": object,
    "store": lambda: current_job().store.jobs,
    "big": lambda: "x" * 10_000_000,
    "generator": lambda: (each for each in "work"),
}


def ends(payload: str) -> object:
    return ENDS[payload]()
