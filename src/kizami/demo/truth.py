"""What has to arrive and be planned, from the recording and the clock alone. Imports nothing of Kizami, on purpose."""

import csv
from pathlib import Path

CHECKS = Path(__file__).with_name("uptime_checks.csv")


def read_checks() -> list[dict[str, str]]:
    """Return the recorded checks, oldest first."""
    with CHECKS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def turns_down(checks: list[dict[str, str]]) -> list[str]:
    """Return `<service>-<checked_at_ms>` for every check at which a service that was up is down."""
    last: dict[str, str] = {}
    turns = []
    for check in checks:
        service, status = check["service"], check["status"]
        if status == "down" and last.get(service) == "up":
            turns.append(f"{service}-{check['checked_at_ms']}")
        last[service] = status
    return turns


def ticks_between(began_ms: int, until_ms: int, every_ms: int) -> int:
    """Return how many whole intervals have ended: an interval's first tick is one interval after its beginning."""
    return max(0, until_ms - began_ms) // every_ms
