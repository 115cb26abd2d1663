"""The mirror inside a whole app in virtual time: Slack loses answers while people set the app's clock."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import date, timedelta

import pytest

from kizami import Kizami
from kizami.runtime import Background, Clock, Entropy, ProcessIdentity
from kizami.sandbox.faults import Fault, FaultMix
from kizami.sandbox.server import Sandbox
from kizami.sandbox.settings import SandboxSettings
from kizami.slack import Deliveries
from kizami.testing import World
from kizami.testing.virtual import SeededEntropy, VirtualClock
from tests.simulation.in_process_slack import InProcessSlack
from tests.simulation.mirror_world import ALERTS

ITEMS = 30
FAULTS = (
    (0.25, Fault.answer_lost()),
    (0.15, Fault.never_accepted()),
    (0.1, Fault.server_error(accepted=True, html=False)),
)


@dataclass
class SlackRuntime:
    """Slack's own machine: people set its clock as little as they can ours."""

    clock: Clock
    entropy: Entropy
    process: ProcessIdentity

    def is_gone(self, process: ProcessIdentity) -> bool:
        return process != self.process

    def beat(self, name: str, every_seconds: float, action: object) -> Background:
        raise AssertionError(name, every_seconds, action)


def sandbox_in(world: World, ahead: timedelta) -> Sandbox:
    start_ms = world.clock.now_ms() - world.clock.boot_ms() + round(ahead.total_seconds() * 1000)
    clock = VirtualClock(world.loop, start_ms)
    runtime = SlackRuntime(clock, SeededEntropy(1), ProcessIdentity("slack", "boot", "namespace", 1, "start"))
    return Sandbox(SandboxSettings(rate_limited=False), runtime)


@pytest.mark.parametrize("ahead", [timedelta(hours=-7), timedelta(), timedelta(hours=7)], ids=str)
@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_people_do_to_the_clock_each_item_is_posted_once(ahead: timedelta, seed: int) -> None:
    """B065, B076, B086."""
    app = Kizami()
    queues: list[Deliveries] = []

    @app.performer(max_attempts=1)
    async def mirror(payload: int) -> None:
        if payload <= ITEMS:
            await queues[-1].add(f"item {payload}", f"item {payload}", due=date(2025, 12, 1))
        await queues[-1].deliver()

    chance = random.Random(seed)  # noqa: S311 - the same in every run
    with World(app, seed=seed) as world:
        sandbox = sandbox_in(world, ahead)
        sandbox.faults.mix = FaultMix(seed, FAULTS, frozenset({"chat.postMessage"}))
        for number in range(1, ITEMS + 11):
            if number > ITEMS:
                sandbox.faults.clear()
            # Each time a process that has yet to learn what time it is at Slack.
            queues.append(Deliveries(InProcessSlack(sandbox), channel=ALERTS, time_zone="UTC", max_age=timedelta(99)))
            world.wait(mirror.enqueue(number))
            world.run_for(timedelta(seconds=chance.choice([1, 20, 90])))
            world.step_wall_clock(timedelta(hours=chance.choice([-5, -1, 0, 0, 1, 5])))
    posted = sorted(str(entry.text) for entry in sandbox.log.posts(ALERTS))
    assert posted == sorted(f"item {number}" for number in range(1, ITEMS + 1))
