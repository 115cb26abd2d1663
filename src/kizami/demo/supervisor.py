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
    from kizami.sandbox.hooks import Call

SANDBOX_TOKEN: Final = "xoxb-sandbox"  # noqa: S105 - the stand-in's token opens nothing
PHASES: Final = ("before_send", "sent", "accepted", "answered", "between_items")
"""Before the send; sent, not accepted; accepted, not answered; answered, not marked; between two items."""


@dataclass(slots=True)
class KillPlan:
    """Which phases the worker is still to be killed at, in order."""

    phases: list[str]
    done: Counter[str] = field(default_factory=Counter)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def drawn(cls, seed: int, rounds: int) -> KillPlan:
        """Return a plan with every phase `rounds` times, shuffled by the seed."""
        cards = [
            (hashlib.sha256(f"{seed} {n} {phase}".encode()).digest(), phase) for n in range(rounds) for phase in PHASES
        ]
        return cls([phase for _, phase in sorted(cards)])

    @property
    def total(self) -> int:
        """Return how many kills the whole plan has."""
        return len(self.phases) + self.done.total()

    @property
    def wanted(self) -> str | None:
        """Return the phase to kill at next."""
        return self.phases[0] if self.phases else None

    def count(self) -> None:
        """Note that the next kill has happened."""
        self.done[self.phases.pop(0)] += 1
        self.changed.set()


class Supervisor:
    """One worker at a time; a killed one is started again at once."""

    def __init__(self, arguments: list[str], environment: dict[str, str], log: Path, plan: KillPlan) -> None:
        self._command = [sys.executable, "-m", "kizami.demo.worker", *arguments]
        self._environment = os.environ | environment
        self._log = log
        self.plan = plan
        self.process: asyncio.subprocess.Process | None = None
        self._stopping = False

    async def run(self) -> None:
        """Keep a worker running until `stop`. Raises KizamiError when one ends by itself."""
        while not self._stopping:
            with self._log.open("ab") as log:
                self.process = await asyncio.create_subprocess_exec(
                    *self._command,
                    env=self._environment,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=log,
                )
            await self._follow(self.process)
            status = await self.process.wait()
            if not self._stopping and status >= 0:
                raise KizamiError(f"The worker ended by itself with status {status}.", remedy=f"Read {self._log}.")

    async def stop(self) -> None:
        """End the worker gracefully."""
        self._stopping = True
        if self.process is not None and self.process.returncode is None:
            self.process.terminate()
            await self.process.wait()

    async def at_received(self, call: Call) -> None:
        """Sandbox hook: a post is in, nothing accepted."""
        del call
        await self._at("sent")

    async def at_accepted(self, call: Call) -> None:
        """Sandbox hook: a post is accepted, not answered."""
        del call
        await self._at("accepted")

    async def _follow(self, process: asyncio.subprocess.Process) -> None:
        said, answers = process.stdout, process.stdin
        while said is not None and answers is not None and (line := await said.readline()):
            phase, _, item = line.decode().strip().partition(" ")
            if not item.startswith("board/"):  # repeating an edit is harmless; a notice is what a kill could double
                await self._at(phase)
            if process.returncode is None:
                answers.write(b"\n")

    async def _at(self, phase: str) -> None:
        process = self.process
        if phase != self.plan.wanted or process is None or process.returncode is not None or self._stopping:
            return
        process.kill()
        self.plan.count()
        await process.wait()
