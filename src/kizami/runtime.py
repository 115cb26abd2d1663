"""The one module that owns clocks, randomness, sleeping and the identity of this process.

Everything else receives a `Runtime` and asks it. A lint rule bans `time`, `random`, `secrets`, `uuid`,
`datetime.now` and `asyncio.sleep` outside this file (and its virtual counterpart in `kizami.testing`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from kizami.core.times import EpochMs

log = logging.getLogger("kizami.runtime")
UNKNOWN = "unknown"


class Clock(Protocol):
    """Two clocks: the wall, which people set and steps move, and the boot clock, which nothing moves."""

    def now_ms(self) -> EpochMs:
        """Return the wall clock in integer epoch milliseconds, UTC."""
        ...

    def boot_ms(self) -> int:
        """Return milliseconds since boot, suspend included; steps of the wall clock don't touch it."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds` on a monotonic clock."""
        ...


class Entropy(Protocol):
    """Where randomness comes from."""

    def fraction(self) -> float:
        """Return a number in [0, 1)."""
        ...

    def token(self, size: int = 16) -> str:
        """Return `size` random bytes in lower-case hexadecimal."""
        ...


class Background(Protocol):
    """A beat that runs beside the event loop until it is stopped."""

    def stop(self) -> None:
        """Stop and wait for the beat in progress to end. Safe to call twice."""
        ...


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Who a process is, exactly: a process id alone is reused, these five together are not."""

    host: str
    boot_id: str
    pid_namespace: str
    pid: int
    started: str


class Runtime(Protocol):
    """The world as the engine sees it; the real one is `SystemRuntime`, the simulated one is in `kizami.testing`."""

    clock: Clock
    entropy: Entropy

    @property
    def process(self) -> ProcessIdentity:
        """Return who this process is: the one that asks, also if it was forked after the runtime was made."""
        ...

    def is_gone(self, process: ProcessIdentity) -> bool:
        """Return True only if `process` is known to have ended; False when it lives or can't be known from here."""
        ...

    def beat(self, name: str, every_seconds: float, action: Callable[[], None]) -> Background:
        """Run `action` every `every_seconds` off the event loop, first after one period."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> EpochMs:
        return time.time_ns() // 1_000_000

    def boot_ms(self) -> int:
        return time.clock_gettime_ns(_BOOT_CLOCK) // 1_000_000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class SystemEntropy:
    """The operating system's randomness."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def fraction(self) -> float:
        return self._random.random()

    def token(self, size: int = 16) -> str:
        return os.urandom(size).hex()


class _Thread:
    """A daemon thread that calls an action at a period until stopped."""

    def __init__(self, name: str, every_seconds: float, action: Callable[[], None]) -> None:
        self._stop = threading.Event()
        self._every = every_seconds
        self._action = action
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            try:
                self._action()
            except Exception:  # the beat must go on: without it a healthy worker looks dead
                log.exception("%s failed and goes on", self._thread.name)

    def stop(self) -> None:
        self._stop.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()


@dataclass(slots=True)
class SystemRuntime:
    """The real world."""

    clock: Clock = field(default_factory=SystemClock)
    entropy: Entropy = field(default_factory=SystemEntropy)
    _identified: ProcessIdentity | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def process(self) -> ProcessIdentity:
        pid = os.getpid()
        if self._identified is None or self._identified.pid != pid:
            self._identified = identify(pid)
        return self._identified

    def is_gone(self, process: ProcessIdentity) -> bool:
        here = self.process
        if process.host != here.host:
            return False
        if process.boot_id != here.boot_id:
            return _is_earlier_boot(process.boot_id, here.boot_id)
        if process.pid_namespace != here.pid_namespace:
            return False
        started = _started(process.pid)
        return started not in (UNKNOWN, process.started)

    def beat(self, name: str, every_seconds: float, action: Callable[[], None]) -> Background:
        return _Thread(name, every_seconds, action)


def identify(pid: int) -> ProcessIdentity:
    """Return the identity of a process on this machine."""
    return ProcessIdentity(
        host=socket.gethostname(),
        boot_id=f"{machine_id()}:{boot_id()}",
        pid_namespace=_link("/proc/self/ns/pid"),
        pid=pid,
        started=_started(pid),
    )


def machine_id(file: Path = Path("/etc/machine-id")) -> str:
    """Return what tells this machine from others of its name, such as cloned ones; empty where nothing does."""
    found = _read(file)
    return sha256(found.encode()).hexdigest()[:8] if found else ""


def _is_earlier_boot(other: str, here: str) -> bool:
    """Tell whether a boot of this very machine is over: hosts share names, and another machine's boot says nothing."""
    (machine, _, boot), (my_machine, _, my_boot) = other.partition(":"), here.partition(":")
    return bool(machine) and machine == my_machine and bool(boot) and bool(my_boot)


def boot_id(linux: Path = Path("/proc/sys/kernel/random/boot_id")) -> str:
    """Return what changes with each start of this machine: Linux's boot id, or macOS's boot session.

    Empty where neither is known. Then nobody is ever taken for gone because of it, and only silence tells.
    """
    return _read(linux) or _answer("sysctl", "-n", "kern.bootsessionuuid")


def sortable_id(clock: Clock, entropy: Entropy) -> str:
    """Return an id whose text order is its order in time: 48 bits of epoch ms, then 64 random bits (UUIDv7's idea)."""
    return f"{clock.now_ms():012x}{entropy.token(8)}"


def _started(pid: int) -> str:
    """Return the process's start time in clock ticks since boot, or '' when there is no such live process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return "" if Path("/proc/self/stat").exists() else UNKNOWN
    except OSError:
        return UNKNOWN
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in {"Z", "X"} else fields[19]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _answer(program: str, *arguments: str) -> str:
    """Return what a program of the system prints, or nothing where there is none such or it fails."""
    found = shutil.which(program)
    if found is None:
        return ""
    try:
        command = [found, *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)  # noqa: S603 - our own words
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.strip() if ran.returncode == 0 else ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
