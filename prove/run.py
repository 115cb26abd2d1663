"""Runs the proofs at full size and prints a report in Markdown.

A proof is a file `prove/<name>_prove.py`. Its docstring's first line is the claim; its function `prove(seed)` tries to
break the claim and returns the figures of the attempt, or raises AssertionError when the claim is broken.

    python prove/run.py                          every proof
    python prove/run.py exactly_once --seed 7    some of them, with a seed of your own
"""

from __future__ import annotations

import argparse
import importlib.util
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from types import ModuleType

FOLDER = Path(__file__).resolve().parent
ENDING = "_prove"
SEED_DEFAULT = 1

Figures = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Proof:
    """A claim and the function that tries to break it."""

    name: str
    claim: str
    prove: Callable[[int], Figures]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one attempt to break a claim ended; `broken` is None when the claim held."""

    proof: Proof
    seconds: float
    figures: Figures
    broken: str | None


def find_proofs(folder: Path, wanted: list[str]) -> list[Proof]:
    """Return the wanted proofs of a folder (all when none is named), by name; an unknown name is an error."""
    paths = {path.stem.removesuffix(ENDING): path for path in sorted(folder.glob(f"*{ENDING}.py"))}
    if unknown := sorted(set(wanted) - set(paths)):
        sys.exit(f"There is no proof named {', '.join(unknown)}; there are: {', '.join(paths) or 'none yet'}")
    return [_proof(name, path) for name, path in paths.items() if not wanted or name in wanted]


def attempt(proof: Proof, seed: int) -> Verdict:
    """Run one proof; only a broken claim is caught, a bug in the proof itself goes through."""
    started = perf_counter()
    try:
        figures, broken = proof.prove(seed), None
    except AssertionError as error:
        figures, broken = {}, str(error) or "an assertion without a message"
    return Verdict(proof, perf_counter() - started, figures, broken)


def report(verdicts: list[Verdict], seed: int, at: datetime) -> str:
    """Return the report as Markdown."""
    machine = (
        f"{platform.system()} {platform.machine()}, {platform.python_implementation()} {platform.python_version()}"
    )
    head = f"Run at {at:%Y-%m-%d %H:%M} UTC with seed {seed} on {machine}."
    if not verdicts:
        return f"{head}\n\nThere are no proofs yet: nothing was run and nothing is proved."
    return "\n\n".join([head, *map(_section, verdicts)])


def main(arguments: list[str]) -> int:
    """Run what the command line names; 1 when a claim is broken."""
    parser = argparse.ArgumentParser(description="Run the proofs at full size.")
    parser.add_argument("name", nargs="*", help="proofs to run; all when none is named")
    parser.add_argument("--seed", type=int, default=SEED_DEFAULT)
    options = parser.parse_args(arguments)
    started = datetime.now(UTC)
    verdicts = [attempt(proof, options.seed) for proof in find_proofs(FOLDER, options.name)]
    print(report(verdicts, options.seed, started))
    return int(any(verdict.broken is not None for verdict in verdicts))


def _proof(name: str, path: Path) -> Proof:
    module = _load(path)
    return Proof(name, (module.__doc__ or "").strip().partition("\n")[0], module.prove)


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _section(verdict: Verdict) -> str:
    result = "held" if verdict.broken is None else f"BROKEN: {verdict.broken}"
    figures = "".join(f"\n- {name}: {value}" for name, value in verdict.figures.items())
    return f"### {verdict.proof.name}\n\n{verdict.proof.claim}\n\n{result}, {verdict.seconds:.0f} s{figures}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
