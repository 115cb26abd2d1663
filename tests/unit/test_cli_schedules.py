from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path

import pytest

from kizami import Kizami
from tests.unit.cli_project import APP, Project, Ran, project_in

NIGHT = '\napp.schedule("night", hello, cron="0 3 * * *", time_zone="Europe/Berlin", window=Window("04:00", "05:00"))\n'


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Project:
    return project_in(tmp_path, capsys, monkeypatch)


def hello() -> str:
    return "hi"


def test_check_is_0_when_every_tick_is_inside(project: Project) -> None:
    ran = project.run("check", "reports:app")
    assert (ran.code, ran.out) == (0, "Posting windows checked: 1 of 2 schedules; no findings.\n")


def test_check_is_1_with_findings_that_name_schedule_and_local_time(project: Project) -> None:
    project.write("reports.py", APP + NIGHT)
    ran = project.run("check", "reports:app")
    assert ran.code == 1
    assert "night: It ticks at " in ran.out
    assert "Europe/Berlin (GMT+0" in ran.out
    answer = json.loads(project.run("check", "reports:app", "--json").out)
    assert answer["checked"] == ["morning", "night"]
    assert {finding["schedule"] for finding in answer["findings"]} == {"night"}


def test_check_is_2_when_there_is_nothing_to_check(project: Project) -> None:
    project.write("bare.py", 'from kizami import Kizami\napp = Kizami("bare")')
    ran = project.run("check", "bare:app")
    assert ran.code == 2
    assert "nothing to check" in ran.err


def test_a_tick_fires_once_and_its_repetition_is_a_duplicate_that_exits_0(project: Project) -> None:
    first, second = (project.run("tick", "reports:app", "morning", "--json") for _ in range(2))
    assert (first.code, second.code) == (0, 0)
    one, other = json.loads(first.out), json.loads(second.out)
    assert (one["outcome"], one["duplicate"]) == ("fired", False)
    assert (other["outcome"], other["duplicate"]) == ("duplicate", True)
    assert one["scheduled_at"] == other["scheduled_at"]
    assert "duplicate" in project.run("tick", "reports:app", "morning").out


def test_a_tick_that_a_later_one_overtook_is_told_and_exits_0(project: Project) -> None:
    """It never fires, so the platform has nothing to repeat; delivered again, it is a duplicate."""
    times = ("2026-03-10T00:00:00Z", "2026-03-09T00:00:00Z", "2026-03-09T00:00:00Z")
    ran = [project.run("tick", "reports:app", "morning", "--scheduled-time", at, "--json") for at in times]
    assert [each.code for each in ran] == [0, 0, 0]
    told = [json.loads(each.out) for each in ran]
    assert [each["outcome"] for each in told] == ["fired", "overtaken", "duplicate"]
    assert [each["duplicate"] for each in told] == [False, False, True]


def test_a_tick_through_code_that_workers_superseded_is_refused_with_exit_1(project: Project) -> None:
    """Exit 1: the platform's repetition may meet the new code."""
    newer = Kizami("reports")
    newer.scheduled("morning", cron="0 9 * * *")(hello)

    async def beside_newer_code() -> Ran:
        async with newer.running():
            return await asyncio.to_thread(project.run, "tick", "reports:app", "morning", "--json")

    ran = asyncio.run(beside_newer_code())
    assert (ran.code, json.loads(ran.out)["outcome"]) == (1, "superseded")


def test_a_tick_takes_the_platforms_time_in_either_spelling(project: Project) -> None:
    """The same Friday, 9 o'clock in Tokyo, twice: the second is known already."""
    spelt = project.run("tick", "reports:app", "morning", "--scheduled-time", "2024-05-10T00:00:00Z", "--json")
    counted = project.run("tick", "reports:app", "morning", "--scheduled-time", "1715299200000", "--json")
    assert [json.loads(ran.out)["outcome"] for ran in (spelt, counted)] == ["fired", "duplicate"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--scheduled-time", "2024-05-10T00:00:00"), "has no offset from UTC"),
        (("--scheduled-time", "soon"), "is 'soon', not an instant"),
        (("--scheduled-time", "9" * 5_000), "not an instant. Write it as"),
        (("--scheduled-time", "9" * 18), "--scheduled-time 999999999999999999 ms is outside the years 1 to 9999"),
        (("--scheduled-time", "0001-01-01T00:00:00+14:00"), "--scheduled-time -62135647200000 ms is outside"),
        (("--scheduled-time", "2999-01-04T00:00:00Z"), "lies in the future of schedule morning"),
        (("--scheduled-time", "2999-01-04T00:00:00Z"), "Deliver it when its time has come"),
        (("--scheduled-time", "2024-05-10T00:01:00Z"), "is not a planned time of schedule morning"),
        (("--manual", "--scheduled-time", "2024-05-10T00:00:00Z"), "Leave out --scheduled-time"),
    ],
)
def test_a_tick_at_the_wrong_time_is_refused_with_exit_2(
    project: Project, arguments: tuple[str, ...], sentence: str
) -> None:
    ran = project.run("tick", "reports:app", "morning", *arguments)
    assert (ran.code, sentence in ran.err) == (2, True)


def test_a_tick_says_that_no_worker_is_there_and_waiting_for_its_job_fails(project: Project) -> None:
    ran = project.run("tick", "reports:app", "morning", "--wait", "0")
    assert ran.code == 1
    assert "No worker for hello is registered" in ran.err
    assert "has not ended after 0 s; it is SCHEDULED" in ran.err


def test_manual_ticks_are_never_duplicates(project: Project) -> None:
    ran = [json.loads(project.run("tick", "reports:app", "morning", "--manual", "--json").out) for _ in range(2)]
    assert [one["outcome"] for one in ran] == ["fired", "fired"]
    assert len({one["job_id"] for one in ran}) == 2


def test_an_unknown_schedule_is_exit_5(project: Project) -> None:
    for command in (("tick",), ("schedules", "show"), ("schedules", "preview"), ("schedules", "trigger")):
        ran = project.run(*command, "reports:app", "evening")
        assert (ran.code, "There is no schedule evening in app reports" in ran.err) == (5, True)


def test_listing_shows_what_code_defines_before_and_after_it_is_registered(project: Project) -> None:
    assert project.run("schedules", "list", "reports:app").out.count("not registered yet") == 2
    project.run("tick", "reports:app", "morning")
    after = project.run("schedules", "list", "reports:app")
    assert "not registered" not in after.out
    assert "Asia/Tokyo (GMT+09:00)" in after.out


def test_a_preview_needs_no_registered_schedule(project: Project) -> None:
    ran = project.run("schedules", "preview", "reports:app", "morning", "--count", "3")
    assert [line[11:] for line in ran.out.splitlines()] == ["09:00:00 Asia/Tokyo (GMT+09:00)"] * 3
    assert len(json.loads(project.run("schedules", "preview", "reports:app", "often", "--json").out)) == 10


def test_pause_and_resume_change_what_is_shown(project: Project) -> None:
    project.run("tick", "reports:app", "morning")
    assert "morning: paused since " in project.run("schedules", "pause", "reports:app", "morning").out
    assert json.loads(project.run("schedules", "show", "reports:app", "morning", "--json").out)["paused_at"] is not None
    assert "morning: active, next " in project.run("schedules", "resume", "reports:app", "morning").out


def test_show_has_the_ledger(project: Project) -> None:
    project.run("schedules", "trigger", "reports:app", "morning")
    ran = project.run("schedules", "show", "reports:app", "morning")
    assert "manual" in ran.out
    found = json.loads(project.run("schedules", "show", "reports:app", "morning", "--json").out)
    assert found["timing"] == {"kind": "cron", "expressions": ["0 9 * * 1-5"], "time_zone": "Asia/Tokyo"}
    assert [line["outcome"] for line in found["ledger"]] == ["fired"]


def test_jobs_are_listed_shown_cancelled_and_not_cancelled_twice(project: Project) -> None:
    job_id = json.loads(project.run("tick", "reports:app", "morning", "--json").out)["job_id"]
    assert job_id in project.run("jobs", "list", "reports:app", "--state", "SCHEDULED").out
    assert project.run("jobs", "list", "reports:app", "--state", "RUNNING").out == "No such jobs.\n"
    assert "morning at " in project.run("jobs", "show", "reports:app", job_id).out
    assert project.run("jobs", "cancel", "reports:app", job_id).code == 0
    again = project.run("jobs", "cancel", "reports:app", job_id)
    assert (again.code, "is CANCELLED" in again.err) == (5, True)
    assert project.run("jobs", "retry", "reports:app", job_id).code == 5
    assert json.loads(project.run("jobs", "show", "reports:app", job_id, "--json").out)["state"] == "CANCELLED"


def test_an_unknown_job_is_exit_5_and_what_is_no_job_id_exit_2(project: Project) -> None:
    assert project.run("jobs", "show", "reports:app", "hello#0:x").code == 5
    assert project.run("jobs", "show", "reports:app", "x").code == 2


def test_texts_with_brackets_are_printed_as_they_are(project: Project) -> None:
    """They are no markup: an error text may hold anything."""
    job_id = json.loads(project.run("tick", "reports:app", "morning", "--json").out)["job_id"]
    with sqlite3.connect(project.folder / "kizami.db") as connection:
        connection.execute("UPDATE kizami_jobs SET error = 'no [red]way[/] :smile:'")
    connection.close()
    assert "no [red]way[/] :smile:" in project.run("jobs", "show", "reports:app", job_id).out


def test_a_tick_puts_changed_code_in_force_only_when_told_to(project: Project) -> None:
    assert project.run("tick", "reports:app", "morning").code == 0
    project.write("reports.py", APP.replace("0 9 * * 1-5", "30 9 * * 1-5"))
    for options, changed in (((), False), (("--register",), True)):
        project.run("tick", "reports:app", "morning", *options)
        assert ("30 9 * * 1-5" in project.run("schedules", "list", "reports:app").out) == changed
    assert "--register" in project.run("tick", "reports:app", "morning", "--register", "--manual").err


@pytest.mark.parametrize("group", ["schedules", "jobs", "deliveries", "boards"])
def test_an_app_in_the_place_of_a_command_is_answered_with_the_command_that_was_meant(
    project: Project, group: str
) -> None:
    ran = project.run(group, "reports:app")
    assert ran.code == 2
    assert f"Did you mean `kizami {group} list reports:app`?" in ran.err
