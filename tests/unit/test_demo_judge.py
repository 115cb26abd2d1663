"""Made-up logs of the demo's sandbox: a weakened mirror or scheduler makes the verdict fail, an unlucky one doesn't."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kizami.demo.judge import Span, Ticks, judge
from kizami.demo.mirror import ALERTS, STATUS
from kizami.demo.supervisor import KillPlan
from kizami.demo.truth import read_checks, ticks_between, turns_down
from kizami.demo.verdict import Verdict
from kizami.runtime import SystemRuntime
from kizami.sandbox.callers import Effect
from kizami.sandbox.log import CallLog, Entry

BEGAN = 1_796_000_000_000
FOREVER = (0, 10**18)
CHECKS = read_checks()
ITEM = turns_down(CHECKS)[0]


class MadeUpLog:
    """A log of a run, a second a line; the board and all notices but the first are there already."""

    def __init__(self) -> None:
        self.log = CallLog(100_000)
        self.add("chat.postMessage", STATUS, effect="post", item="board")
        for _ in range(100):
            self.add("chat.update", STATUS, effect="edit")
        for item in turns_down(CHECKS)[1:]:
            self.post(item)

    def add(
        self, method: str, channel: str = ALERTS, *, effect: Effect | None = None, item: str | None = None, **facts: Any
    ) -> Entry:
        at = BEGAN + self.log.last_seq * 1_000
        standard: dict[str, Any] = {
            "at": at,
            "outcome": "ok",
            "ts": f"{at // 1000}.000000",
            "text": None,
            "blocks_digest": None,
            "token": "xoxb-sandbox",
            "fault": None,
            "late": False,
            "metadata": None if item is None else {"event_payload": {"delivery": f"demo/notices/{item}"}},
        }
        entry = self.log.append(method=method, channel=channel, effect=effect, **standard | facts)
        if not entry.late:
            self.log.answered(entry)
        return entry

    def post(self, item: str = ITEM) -> Entry:
        """Add a post that is accepted and answered."""
        return self.add("chat.postMessage", effect="post", item=item)

    def doubt(self) -> Entry:
        """Add a post whose answer is lost, to be accepted late."""
        return self.add("chat.postMessage", outcome="not_accepted", fault="accepted_late")

    def accept(self, doubted: Entry) -> Entry:
        return self.add(
            "chat.postMessage", effect="post", item=ITEM, fault="accepted_late", late=True, call=doubted.seq
        )

    def look(self, span: tuple[int, int] = FOREVER, **facts: Any) -> Entry:
        return self.add("conversations.history", span=span, **facts)

    def verdict(self, seconds: int = 200, ledger_seconds: int = 200) -> Verdict:
        """Judge a run of so many seconds, of which the ledger accounts for the first."""
        span = Span(SystemRuntime().clock, BEGAN, BEGAN + seconds * 1_000, BEGAN + (seconds + 4) * 1_000)
        ledger = Counter({"fired": ledger_seconds - 1})
        ticks = Ticks.counted(span, BEGAN + 1_000, BEGAN + ledger_seconds * 1_000, ledger)
        plan = KillPlan.drawn(1, 10)
        while plan.phases:
            plan.count()
        return judge(self.log, CHECKS, ticks, plan, 200.0, in_time=True)


@pytest.fixture
def run() -> MadeUpLog:
    return MadeUpLog()


def test_a_sound_run_holds(run: MadeUpLog) -> None:
    run.post()
    assert run.verdict().unmet(lookup=True) == {}


def test_a_double_accepted_after_the_look_up_is_nobodys_fault(run: MadeUpLog) -> None:
    doubted = run.doubt()
    run.look()
    run.accept(doubted)
    run.post()
    verdict = run.verdict()
    assert (verdict.unmet(lookup=True), verdict.duplicated, verdict.duplicated_late) == ({}, 0, 1)


def test_a_double_accepted_after_its_repetition_is_nobodys_fault_either(run: MadeUpLog) -> None:
    doubted = run.doubt()
    run.look()
    run.post()
    run.accept(doubted)
    verdict = run.verdict()
    assert (verdict.unmet(lookup=True), verdict.duplicated_late) == ({}, 1)


def test_a_double_accepted_before_the_look_up_fails(run: MadeUpLog) -> None:
    doubted = run.doubt()
    run.accept(doubted)
    run.look()
    run.post()
    assert list(run.verdict().unmet(lookup=True)) == ["duplicated"]


def test_an_early_look_up_does_not_excuse_a_second_that_showed_the_copy(run: MadeUpLog) -> None:
    doubted = run.doubt()
    run.look()
    run.accept(doubted)
    run.look()
    run.post()
    assert list(run.verdict().unmet(lookup=True)) == ["duplicated"]


@pytest.mark.parametrize(
    "facts",
    [
        {"channel": STATUS},
        {"fault": "server_error"},
        {"span": None},
        {"span": (0, BEGAN * 1_000)},
    ],
)
def test_a_double_after_no_look_up_of_its_place_fails(run: MadeUpLog, facts: dict[str, Any]) -> None:
    doubted = run.doubt()
    run.add("conversations.history", **{"span": FOREVER} | facts)
    run.accept(doubted)
    run.post()
    assert list(run.verdict().unmet(lookup=True)) == ["duplicated"]


def test_a_double_without_a_late_copy_fails(run: MadeUpLog) -> None:
    run.post()
    run.look()
    run.post()
    assert list(run.verdict().unmet(lookup=True)) == ["duplicated"]


def test_a_late_copy_excuses_one_double_only(run: MadeUpLog) -> None:
    doubted = run.doubt()
    run.look()
    run.accept(doubted)
    run.post()
    run.post()
    verdict = run.verdict()
    assert (verdict.duplicated, verdict.duplicated_late) == (1, 1)


def test_without_look_up_each_late_copy_explains_one_double(run: MadeUpLog) -> None:
    doubted = run.doubt()
    run.post()
    run.accept(doubted)
    verdict = run.verdict()
    assert (verdict.duplicated, verdict.duplicated_late) == (1, 0)
    assert verdict.duplicated <= verdict.acceptances_unmarked


def test_a_board_posted_twice_fails(run: MadeUpLog) -> None:
    run.post()
    run.add("chat.postMessage", STATUS, effect="post", item="board")
    assert list(run.verdict().unmet(lookup=True)) == ["board_posts"]


@pytest.mark.parametrize("ledger_seconds", [100, 198])
def test_a_scheduler_that_dies_before_the_end_fails(run: MadeUpLog, ledger_seconds: int) -> None:
    run.post()
    assert list(run.verdict(ledger_seconds=ledger_seconds).unmet(lookup=True)) == ["ticks"]


def test_a_ledger_that_goes_on_until_the_stop_balances_and_one_that_runs_ahead_fails(run: MadeUpLog) -> None:
    run.post()
    assert run.verdict(ledger_seconds=203).unmet(lookup=True) == {}
    assert list(run.verdict(ledger_seconds=210).unmet(lookup=True)) == ["ticks"]


def test_an_interval_is_planned_first_when_it_has_passed() -> None:
    assert [ticks_between(500, until, 1_000) for until in (0, 500, 1_499, 1_500, 2_600)] == [0, 0, 0, 1, 2]
