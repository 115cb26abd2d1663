"""What commands print: tables for people, JSON for programs, notices on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from kizami.cli.harmless import harmless, harmless_json

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
_WIDTH_IN_A_PIPE = 240


def print_json(value: object) -> None:
    """Print a value as one JSON document."""
    sys.stdout.write(harmless_json(json.dumps(value, indent=2, ensure_ascii=False, default=str)) + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], nothing: str) -> None:
    """Print rows under their columns, or the sentence `nothing` when there are none."""
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*("" if cell is None else harmless(str(cell)) for cell in row))
    if not table.row_count:
        print_line(nothing)
        return
    _console().print(table)


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Print names and values, one a line; what is None is left out."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in facts:
        if value is not None:
            table.add_row(name, harmless(str(value)))
    _console().print(table)


def print_line(text: str) -> None:
    """Print one line of the answer."""
    sys.stdout.write(f"{harmless(text)}\n")
    sys.stdout.flush()


def notice(text: str) -> None:
    """Print one line beside the answer, on standard error."""
    sys.stderr.write(f"{harmless(text)}\n")
    sys.stderr.flush()


def _console() -> Console:
    """Return a console that takes texts as they are: names and errors may hold brackets, which are no markup."""
    width = None if sys.stdout.isatty() else _WIDTH_IN_A_PIPE
    return Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)
