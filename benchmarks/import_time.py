"""How long `import kizami` takes, against the standard parts and pydantic that a scheduler needs anyway.

Each round starts a fresh interpreter per subject, in turn, so that a busy moment of the machine hits all of them.
"""

from __future__ import annotations

import subprocess
import sys
from statistics import median

ROUNDS = 15
SUBJECTS = {
    "kizami": "import kizami",
    "the parts it stands on": "import asyncio, sqlite3, zoneinfo, pydantic",
}
_PROGRAM = """
from time import perf_counter_ns
started = perf_counter_ns()
{statement}
print(perf_counter_ns() - started)
"""


def import_ms(statement: str) -> float:
    """Return the milliseconds that a fresh interpreter takes for the statement."""
    output = subprocess.check_output([sys.executable, "-c", _PROGRAM.format(statement=statement)], text=True)
    return int(output) / 1e6


def main() -> None:
    """Measure and print one Markdown table."""
    for statement in SUBJECTS.values():
        import_ms(statement)  # the first import writes byte code
    taken: dict[str, list[float]] = {subject: [] for subject in SUBJECTS}
    for _ in range(ROUNDS):
        for subject, statement in SUBJECTS.items():
            taken[subject].append(import_ms(statement))
    base = median(taken["the parts it stands on"])
    print("| import | median ms | fastest ms | ratio |\n| --- | ---: | ---: | ---: |")
    for subject, times in taken.items():
        print(f"| {subject} | {median(times):.1f} | {min(times):.1f} | {median(times) / base:.2f} |")


if __name__ == "__main__":
    main()
