"""Keeps a worker process alive, and kills it on purpose at the phases of a plan."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kizami.core.errors import KizamiError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kizami.sandbox.hooks import Call

SANDBOX_TOKEN: Final = "xoxb-sandbox"  # noqa: S105 - the stand-in's token opens nothing
STOP_SECONDS: Final = 15.0
"""Longer than a worker's own grace times."""
PHASES: Final = ("before_send", "sent", "accepted", "answered", "between_items")
"""Before the send; sent, not accepted; accepted, not answered; answered, not marked; between two items."""
BOARD: Final = "board_"
BOARD_PHASES: Final = tuple(BOARD + phase for phase in PHASES[:4])
"""The same around the first post of the board. It is accepted once, so that a run has one of the last two."""


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill; `acceptance` is the number of the sandbox's entry whose answer it forestalled."""

    phase: str
    acceptance: int | None = None


@dataclass(slots=True)
class KillPlan:
    """Which phases the worker is still to be killed at, in order, and the log of the kills that were made."""

    phases: list[str]
    kills: list[Kill] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def drawn(cls, seed: int, rounds: int) -> KillPlan:
        """Return a plan with every phase `rounds` times, shuffled by the seed, after those at the board's first post.

        An odd seed kills before the board's answer, an even one before its marker.
        """
        cards = [
            (hashlib.sha256(f"{seed} {n} {phase}".encode()).digest(), phase) for n in range(rounds) for phase in PHASES
        ]
        parted = BOARD_PHASES[2 if seed % 2 else 3]
        return cls([*BOARD_PHASES[:2], parted, *(phase for _, phase in sorted(cards))])

    @property
    def total(self) -> int:
        """Return how many kills the whole plan has."""
        return len(self.phases) + len(self.kills)

    @property
    def by_phase(self) -> dict[str, int]:
        """Return how many kills were made in each phase of a notice."""
        return self._count(PHASES)

    @property
    def by_board_phase(self) -> dict[str, int]:
        """Return how many kills were made in each phase of the board's first post."""
        return self._count(BOARD_PHASES)

    def _count(self, phases: tuple[str, ...]) -> dict[str, int]:
        done = Counter(kill.phase for kill in self.kills)
        return {phase: done[phase] for phase in phases}

    @property
    def wanted(self) -> str | None:
        """Return the phase to kill at next."""
        return self.phases[0] if self.phases else None

    def count(self, acceptance: int | None = None) -> None:
        """Note that the next kill has happened."""
        self.kills.append(Kill(self.phases.pop(0), acceptance))
        self.changed.set()


class Supervisor:
    """One worker at a time, and a spare one; a killed one is followed at once."""

    def __init__(
        self,
        arguments: list[str],
        environment: dict[str, str],
        log: Path,
        plan: KillPlan,
        on_start: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._command = [sys.executable, "-m", "kizami.demo.worker", *arguments]
        self._environment = os.environ | environment
        self._log = log
        self._on_start = on_start
        self.plan = plan
        self.process: asyncio.subprocess.Process | None = None
        self._stopping = False

    async def run(self) -> None:
        """Keep a worker running until `stop`. Raises KizamiError when one ends by itself."""
        spare = await self._start()
        try:
            while not self._stopping:
                self.process, spare = spare, await self._start()
                self._on_start(self.process.pid)
                await self._follow(self.process)
                self._require_killed(await self.process.wait())
        finally:
            if spare.returncode is None:
                spare.kill()
            await spare.wait()

    async def _start(self) -> asyncio.subprocess.Process:
        """Start a worker that gets ready and waits for its turn, so that a killed one is followed at once."""
        with self._log.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *self._command,
                env=self._environment,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )

    def _require_killed(self, status: int) -> None:
        if status >= 0 and not self._stopping:
            raise KizamiError(f"The demo's worker ended by itself with status {status}. {self._last_words()}")

    async def stop(self) -> None:
        """End the worker gracefully, by force when that takes too long."""
        self._stopping = True
        process = self.process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    async def at_received(self, call: Call, *, prefix: str = "") -> None:
        """Sandbox hook: a post is in, nothing accepted; if its sender is killed here, it never is."""
        if await self._at(f"{prefix}sent"):
            call.drop()

    async def at_accepted(self, call: Call, *, prefix: str = "") -> None:
        """Sandbox hook: a post is accepted, not answered."""
        await self._at(f"{prefix}accepted", None if call.entry is None else call.entry.seq)

    def _last_words(self) -> str:
        """Return the end of the worker's log: the file itself goes with the demo's folder."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return f"The last line of its log: {lines[-1]}" if lines else "Its log is empty."

    async def _follow(self, process: asyncio.subprocess.Process) -> None:
        """Tell a worker that it is its turn, and answer what it says until it ends."""
        said, answers = process.stdout, process.stdin
        if said is None or answers is None:
            return
        if self._stopping:  # `stop` came in between, and met the worker before
            process.kill()
        answers.write(b"\n")
        while line := await said.readline():
            phase, _, item = line.decode().strip().partition(" ")
            # The plan wants the board's phases first, so they are those of its post; repeating an edit is harmless.
            await self._at(BOARD + phase if item.startswith("board/") else phase)
            if process.returncode is None:
                answers.write(b"\n")

    async def _at(self, phase: str, acceptance: int | None = None) -> bool:
        """Kill the worker if the plan wants it here; tell whether it was killed."""
        process = self.process
        if phase != self.plan.wanted or process is None or process.returncode is not None or self._stopping:
            return False
        process.kill()
        self.plan.count(acceptance)
        await process.wait()
        return True
