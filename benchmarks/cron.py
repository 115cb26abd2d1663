"""Next fire times: Kizami beside cronsim and croniter, in one process.

Twenty expressions, two zones, 200 successive fires from one start, the median of five rounds, then the mean over the
expressions. Every library has its expression parsed before the clock starts. Run: python benchmarks/cron.py
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim

from kizami.core.cron import parse_cron
from kizami.core.next_fire import next_fire, next_fire_s
from kizami.core.zone import load_zone

EXPRESSIONS = (
    "*/5 * * * *", "0 9 * * 1-5", "0 0 29 2 *", "30 2 * * *", "0 0 13 * 5", "15,45 8-17 * * 1-5", "0 0 1 1 *",
    "59 23 31 12 *", "*/7 */3 * * *", "0 12 1-7 * 1", "* * * * *", "0 * * * *", "0 0 * * *", "0 0 * * 0", "0 0 1 * *",
    "5 4 * * 0", "0 22 * * 1-5", "23 0-20/2 * * *", "0 0,12 1 */2 *", "10-50/10 3 15 6,12 *",
)  # fmt: skip
ZONES = ("UTC", "America/New_York")
FIRES = 200
ROUNDS = 5
START = datetime(2026, 1, 15, 10, 7, 30)  # noqa: DTZ001 - local, in whichever zone is measured

Step = Callable[[], object]


def datetimes_of_kizami(expression: str, zone: str) -> Step:
    """Return a step that asks for the next datetime from the one before."""
    cron, loaded, at = parse_cron(expression), load_zone(zone), START.replace(tzinfo=ZoneInfo(zone))

    def step() -> datetime:
        nonlocal at
        at = next_fire(cron, loaded, at)
        return at

    return step


def integers_of_kizami(expression: str, zone: str) -> Step:
    """Return a step that asks for the next epoch second from the one before."""
    cron, loaded, at = parse_cron(expression), load_zone(zone), int(START.replace(tzinfo=ZoneInfo(zone)).timestamp())

    def step() -> int:
        nonlocal at
        at = next_fire_s(cron, loaded, at)
        return at

    return step


def datetimes_of_cronsim(expression: str, zone: str) -> Step:
    """Return cronsim's own iterator step."""
    return CronSim(expression, START.replace(tzinfo=ZoneInfo(zone))).__next__


def datetimes_of_croniter(expression: str, zone: str) -> Step:
    """Return croniter's own iterator step."""
    iterator = croniter(expression, START.replace(tzinfo=ZoneInfo(zone)))
    return lambda: iterator.get_next(datetime)


CONTENDERS: dict[str, Callable[[str, str], Step]] = {
    "kizami, datetimes": datetimes_of_kizami,
    "kizami, integers": integers_of_kizami,
    "cronsim": datetimes_of_cronsim,
    "croniter": datetimes_of_croniter,
}


def microseconds_per_fire(make: Callable[[str, str], Step], expression: str, zone: str) -> float:
    """Return the median over the rounds."""
    rounds = []
    for _ in range(ROUNDS):
        step = make(expression, zone)
        begun = time.perf_counter()
        for _ in range(FIRES):
            step()
        rounds.append((time.perf_counter() - begun) / FIRES * 1e6)
    return statistics.median(rounds)


def first_difference(expression: str, zone: str) -> str | None:
    """Return the first fire in which Kizami and cronsim differ, if any."""
    ours, theirs = datetimes_of_kizami(expression, zone), datetimes_of_cronsim(expression, zone)
    for _ in range(FIRES):
        pair = [at.astimezone(UTC) for at in (ours(), theirs()) if isinstance(at, datetime)]
        if pair[0] != pair[1]:
            return f"{expression} in {zone}: kizami {pair[0]:%F %T}, cronsim {pair[1]:%F %T} UTC"
    return None


def main() -> None:
    """Print the means, the ratios to cronsim and where the answers differ."""
    means: dict[str, float] = {}
    for name, make in CONTENDERS.items():
        per_zone = [statistics.mean(microseconds_per_fire(make, one, zone) for one in EXPRESSIONS) for zone in ZONES]
        means[name] = statistics.mean(per_zone)
        shown = "  ".join(f"{zone} {mean:7.2f}" for zone, mean in zip(ZONES, per_zone, strict=True))
        sys.stdout.write(f"{name:18} {means[name]:7.2f} us per fire   ({shown})\n")
    for name in ("kizami, datetimes", "kizami, integers"):
        ratios = "   ".join(f"{means[peer] / means[name]:5.1f}x {peer}" for peer in ("cronsim", "croniter"))
        sys.stdout.write(f"{name}: {ratios}\n")
    differences = [found for zone in ZONES for one in EXPRESSIONS if (found := first_difference(one, zone))]
    sys.stdout.write(
        "\n".join(["answers unlike cronsim's:", *differences] if differences else ["all answers agree"]) + "\n"
    )


if __name__ == "__main__":
    main()
