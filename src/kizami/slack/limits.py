"""Slack's limits on text and blocks, as settings: the platform moves them, and reports of them disagree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class Limits:
    """Characters and counts, all after escaping.

    The defaults are safe for both posting and editing: what is posted must be editable, and an edit takes less text
    than a post. `table_rows` counts the header.
    """

    text: int = 2_999
    section: int = 3_000
    header: int = 150
    blocks: int = 50
    blocks_total: int = 12_000
    fields: int = 10
    field: int = 2_000
    context_elements: int = 10
    table_rows: int = 100
    table_columns: int = 20
    table_total: int = 10_000


LIMITS: Final = Limits()
SMALLER: Final = replace(LIMITS, text=1_000, section=1_000, blocks=10, blocks_total=4_000)
"""For the one second try after Slack refused the size: well inside every limit anybody has reported."""
