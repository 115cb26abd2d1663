"""The posting windows of the app that is deployed, as an assertion."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kizami.app.app import Kizami


def assert_ticks_within(app: Kizami) -> None:
    """Assert that every tick of every schedule with a window falls inside it, from now on.

    Raises AssertionError naming each tick outside, and DefinitionError when there is nothing to check.
    """
    app.check()
    now = app.runtime.clock.now_ms()
    lines = [f"Schedule {each.name}: {finding.message}" for each in app.definitions for finding in each.findings(now)]
    if lines:
        raise AssertionError("\n".join(lines))
