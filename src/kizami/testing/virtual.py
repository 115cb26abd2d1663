"""A world in which time is a number: an event loop that jumps to the next timer, clocks, chance and processes."""

from __future__ import annotations

import asyncio
import random
import selectors
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kizami.runtime import Background, Clock, Entropy, ProcessIdentity

if TYPE_CHECKING:
    from datetime import timedelta

    from kizami.core.times import EpochMs

THREAD_SECONDS_MAX: Final = 30.0
"""Real seconds that a synchronous function may take before the world says that it stands still."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only when nothing else is left to do.

    Calls to threads run one after the other, each to its end, at the instant at which they were made; so their order
    is the same in every run, and they take no virtual time.
    """

    def __init__(self) -> None:
        self._now_s = 0.0
        self._selector_of_time = _Selector(self)
        self._calls: deque[tuple[asyncio.Future[Any], Callable[[], Any]]] = deque()
        self._calling: threading.Thread | None = None
        self._beats: list[_Beat] = []
        super().__init__(self._selector_of_time)
        # The base class calls a timer due when it is less than this ahead. Its own figure is finer than what a float
        # of half a year can tell apart, and then no timer would ever be due.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        """Return virtual seconds since the world began."""
        return self._now_s

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]  # the base class types this by unpacking
        """Run a call in a thread of its own once the loop has nothing else to do; `executor` is not asked."""
        del executor
        answer: asyncio.Future[Any] = self.create_future()
        self._calls.append((answer, lambda: func(*args)))
        return answer

    def add_beat(self, every_seconds: float, action: Callable[[], None]) -> Background:
        """Run an action whenever a period has passed; of the beats that one jump passes over, only the last runs."""
        beat = _Beat(self._beats, every_seconds, action, self._now_s + every_seconds)
        self._beats.append(beat)
        return beat

    def start_next_call(self) -> bool:
        """Start the oldest waiting thread call; tell whether one is running now."""
        while self._calling is None and self._calls:
            answer, call = self._calls.popleft()
            if not answer.cancelled():
                self._calling = threading.Thread(target=self._call, args=(answer, call), daemon=True)
                self._calling.start()
        return self._calling is not None

    def jump(self, seconds: float) -> None:
        """Let virtual time pass, with the beats that fall into it."""
        target = self._now_s + seconds
        for beat in sorted((each for each in self._beats if each.next_s <= target), key=lambda each: each.next_s):
            self._now_s = max(self._now_s, beat.last_until(target))
            beat.action()
        self._now_s = target

    def _call(self, answer: asyncio.Future[Any], call: Callable[[], Any]) -> None:
        value: Any = None
        error: BaseException | None = None
        try:
            value = call()
        except (StopIteration, GeneratorExit) as raised:  # no future takes the one, no coroutine the other
            error = RuntimeError(f"the function raised {raised!r}")
        except BaseException as raised:  # noqa: BLE001 - whatever a thread raises belongs to who awaits it
            error = raised
        self.call_soon_threadsafe(self._answer, answer, value, error)

    def _answer(self, answer: asyncio.Future[Any], value: object, error: BaseException | None) -> None:
        self._calling = None
        if answer.done():
            return
        if error is None:
            answer.set_result(value)
        else:
            answer.set_exception(error)


class _Selector(selectors.SelectSelector):
    """Where an event loop waits: this one lets threads finish, and then moves the clock instead."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if self._loop.start_next_call():
            return self._await_thread()
        if timeout is None:
            message = "The world stands still: every task waits, and no timer is set."
            raise RuntimeError(message)
        self._loop.jump(timeout)
        return []

    def _await_thread(self) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(THREAD_SECONDS_MAX)
        if not ready:
            message = (
                f"The world stands still: a synchronous function has not returned for {THREAD_SECONDS_MAX:.0f} real "
                "seconds. Virtual time doesn't pass in threads; make it async, or test it with a real worker."
            )
            raise RuntimeError(message)
        return ready


@dataclass(slots=True, eq=False)
class _Beat:
    """An action at a period, in virtual time."""

    among: list[_Beat]
    every_s: float
    action: Callable[[], None]
    next_s: float

    def last_until(self, target_s: float) -> float:
        """Return the last instant of this beat that isn't after the target, and go on behind it."""
        last = self.next_s + (target_s - self.next_s) // self.every_s * self.every_s
        self.next_s = last + self.every_s
        return last

    def stop(self) -> None:
        """End the beat. Safe to call twice."""
        if self in self.among:
            self.among.remove(self)


class VirtualClock:
    """The clocks of a virtual world: the boot clock is the loop's time, the wall clock can be stepped."""

    def __init__(self, loop: VirtualLoop, start_ms: EpochMs) -> None:
        self._loop = loop
        self._wall_ms = start_ms

    def now_ms(self) -> EpochMs:
        """Return the wall clock."""
        return self._wall_ms + self.boot_ms()

    def boot_ms(self) -> int:
        """Return virtual milliseconds since the world began."""
        return round(self._loop.time() * 1000)

    async def sleep(self, seconds: float) -> None:
        """Wait in virtual time."""
        await asyncio.sleep(seconds)

    def step_wall(self, by: timedelta) -> None:
        """Set the wall clock forward or (negative) back; the boot clock doesn't notice."""
        self._wall_ms += round(by.total_seconds() * 1000)


class SeededEntropy:
    """Chance that is the same in every run with the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable on purpose

    def fraction(self) -> float:
        """Return a number in [0, 1)."""
        return self._random.random()

    def token(self, size: int = 16) -> str:
        """Return `size` bytes in hexadecimal."""
        return self._random.randbytes(size).hex()


@dataclass(slots=True)
class VirtualRuntime:
    """What the engine sees of a virtual world; a process is gone when it is in `gone`."""

    loop: VirtualLoop
    clock: Clock
    entropy: Entropy
    process: ProcessIdentity
    gone: set[ProcessIdentity] = field(default_factory=set)

    def is_gone(self, process: ProcessIdentity) -> bool:
        """Tell whether the world has declared this process dead."""
        return process in self.gone

    def beat(self, name: str, every_seconds: float, action: Callable[[], None]) -> Background:
        """Run an action at a period of virtual time, off the event loop's tasks."""
        del name
        return self.loop.add_beat(every_seconds, action)
