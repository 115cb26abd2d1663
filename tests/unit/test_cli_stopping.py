"""What SIGTERM and SIGINT mean, by when they come."""

from __future__ import annotations

import signal

import pytest

from kizami.cli.stopping import Stopping


@pytest.mark.parametrize(
    ("seconds", "ends"),
    [
        ((0.0,), []),
        ((0.0, 0.001), []),
        ((0.0, 0.2, 0.499), []),
        ((0.0, 0.5), [143]),
        ((0.0, 0.3, 0.6), [143]),
        ((0.0, 60.0), [143]),
    ],
)
def test_signals_within_half_a_second_of_the_first_are_one(seconds: tuple[float, ...], ends: list[int]) -> None:
    """Each is measured from the first, so that whoever insists is heard."""
    times, ended = iter(seconds), list[int]()
    stopping = Stopping(lambda: 1_000.0 + next(times), ended.append)
    for _ in seconds:
        stopping.on_signal(signal.SIGTERM)
    assert stopping.stop.is_set()
    assert ended == ends


def test_whichever_signal_comes_later_gives_the_exit_code() -> None:
    times, ended = iter((0.0, 1.0)), list[int]()
    stopping = Stopping(lambda: next(times), ended.append)
    stopping.on_signal(signal.SIGTERM)
    stopping.on_signal(signal.SIGINT)
    assert ended == [130]
