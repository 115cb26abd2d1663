from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from kizami.cli.mirroring import SCHEDULE, Mirror, MirrorTiming, default_name, say_first_tick
from kizami.cli.query import Query, QueryTooLongError, read_url
from kizami.runtime import SystemRuntime
from kizami.sandbox.server import Sandbox
from kizami.sandbox.settings import SandboxSettings
from tests.unit.cli_project import Project, Ran, project_in

CHANNEL = "C0STATUS"
ROWS = "SELECT id, name, '10:30' AS at FROM orders WHERE name <> ':none' ORDER BY id"


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Project:
    made = project_in(tmp_path, capsys, monkeypatch)
    _change(made, "CREATE TABLE orders (id INTEGER, name TEXT)", "INSERT INTO orders VALUES (7, 'tea <green>')")
    monkeypatch.setenv("KIZAMI_MIRROR_DATABASE_URL", "sqlite:///shop.sqlite")
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-sandbox")
    return made


@pytest.fixture
async def slack(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sandbox]:
    sandbox = Sandbox(SandboxSettings(rate_limited=False), SystemRuntime())
    async with sandbox.serving() as url:
        monkeypatch.setenv("SLACK_API_URL", f"{url.rstrip('/')}/api/")
        yield sandbox


def _change(project: Project, *statements: str) -> None:
    with closing(sqlite3.connect(project.folder / "shop.sqlite")) as connection, connection:
        for statement in statements:
            connection.execute(statement)


async def _once(project: Project, query: str, *more: str, channel: str = CHANNEL) -> Ran:
    return await asyncio.to_thread(project.run, "mirror", "--query", query, "--channel", channel, "--once", *more)


async def test_a_query_becomes_one_message_that_is_edited_ever_after(project: Project, slack: Sandbox) -> None:
    first = await _once(project, ROWS, "--title", "Orders")
    assert (first.code, first.out, first.err) == (0, "The board Orders in C0STATUS is up to date.\n", "")
    _change(project, "INSERT INTO orders VALUES (8, 'rice')")
    assert (await _once(project, ROWS, "--title", "Orders")).code == 0
    (message,) = slack.workspace.messages(CHANNEL)
    assert "2 rows" in message.content.text
    shown = str(message.content.blocks)
    assert all(cell in shown for cell in ("id", "name", "at", "tea", "rice", "10:30"))
    assert (len(slack.log.posts(CHANNEL)), len(slack.log.edits(CHANNEL))) == (1, 1)


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


async def test_a_query_without_an_end_is_ended(project: Project, slack: Sandbox) -> None:
    ran = await _once(project, ENDLESS, "--query-limit", "1s")
    assert (ran.code, ran.out) == (1, "")
    assert "was ended: it took longer than 1 s" in ran.err
    assert "--query-limit" in ran.err
    assert slack.log.posts(CHANNEL) == []


def test_a_server_ends_a_query_that_takes_too_long(postgres_url: str) -> None:
    url = read_url(None, postgres_url.replace("postgresql://", "postgresql+psycopg://"))
    query = Query(url, "SELECT pg_sleep(600)", timedelta(milliseconds=50))
    with pytest.raises(QueryTooLongError, match=r"took longer than 0\.05 s"):
        query.fetch(SystemRuntime())


@pytest.mark.usefixtures("project", "slack")
async def test_a_mirror_says_when_it_ticks_first(caplog: pytest.LogCaptureFixture) -> None:
    timing = MirrorTiming(("0 9 1 1 *",), None, "Asia/Tokyo")
    query = Query(read_url("sqlite:///shop.sqlite", None), ROWS)
    mirror = Mirror.build(query, CHANNEL, "Status", None, timing, once=False)
    caplog.set_level("INFO", "kizami.cli")
    async with mirror.app.running():
        await say_first_tick(mirror)
    assert re.search(r"in C0STATUS first at \d{4}-01-01 09:00:00 Asia/Tokyo \(GMT\+09:00\)", caplog.text)


async def test_once_leaves_a_running_mirror_of_the_same_name_to_its_ticks(project: Project, slack: Sandbox) -> None:
    """Neither its definition nor its phase changes, and it performs nothing of the other's."""
    timing = MirrorTiming((), timedelta(hours=1), None)
    query = Query(read_url("sqlite:///shop.sqlite", None), ROWS)
    mirror = Mirror.build(query, CHANNEL, "Status", None, timing, once=False)
    async with mirror.app.running() as app:
        before = await app.schedules.get(SCHEDULE)
        ran = await _once(project, "SELECT 'once' AS how")
        assert (ran.code, ran.err) == (0, "")
        assert await app.schedules.get(SCHEDULE) == before
        assert (before.version, before.next_at is not None) == (1, True)
    (message,) = slack.workspace.messages(CHANNEL)
    assert "once" in str(message.content.blocks)


async def test_no_rows_are_shown_as_such(project: Project, slack: Sandbox) -> None:
    assert (await _once(project, "SELECT * FROM orders WHERE id = 0")).code == 0
    assert "no rows" in slack.workspace.messages(CHANNEL)[0].content.text


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("SELECT * FROM absent", "The query on sqlite:///shop.sqlite failed: no such table: absent. Correct it"),
        ("SELEKT 1", 'failed: near "SELEKT": syntax error.'),
        ("DELETE FROM orders", "attempt to write a readonly database"),
        ("DELETE FROM orders RETURNING id", "attempt to write a readonly database"),
        ("SELECT id, id FROM orders", "Two columns of the query are named id. Name them apart with AS."),
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10001) SELECT i FROM n", "Add a LIMIT."),
    ],
)
async def test_a_query_that_cannot_be_shown_is_one_sentence_and_the_board_stays(
    project: Project, slack: Sandbox, query: str, sentence: str
) -> None:
    assert (await _once(project, ROWS)).code == 0
    before = list(slack.workspace.messages(CHANNEL))
    ran = await _once(project, query)
    assert ran.code == 1
    assert sentence in ran.err
    assert ran.err.count("\n") == 1
    assert list(slack.workspace.messages(CHANNEL)) == before
    with closing(sqlite3.connect(project.folder / "shop.sqlite")) as connection:
        assert connection.execute("SELECT count(*) FROM orders").fetchone() == (1,)


async def test_a_channel_that_slack_does_not_know_is_exit_1_with_slacks_reason(
    project: Project, slack: Sandbox
) -> None:
    ran = await _once(project, ROWS, channel="C0ABSENT")
    assert (ran.code, "channel_not_found" in ran.err) == (1, True)
    assert "Check the channel's id" in ran.err.splitlines()[-1]
    assert not slack.log.posts()


async def test_an_unreachable_slack_is_exit_1(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_API_URL", "http://127.0.0.1:9/api/")
    ran = await _once(project, ROWS)
    assert (ran.code, "doesn't show the rows" in ran.err) == (1, True)
    said = ran.err.splitlines()[-1]
    assert all(part in said for part in ("Check SLACK_API_URL", "Run the command again"))
    assert "ssl" not in said


async def test_a_wrong_token_is_answered_with_where_to_put_a_right_one(
    project: Project, slack: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-wrong")
    ran = await _once(project, ROWS)
    assert (ran.code, "Put a valid bot token into SLACK_BOT_TOKEN." in ran.err.splitlines()[-1]) == (1, True)
    assert not slack.log.posts()


async def test_a_mirror_refuses_a_database_in_memory(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would forget its message, and post another one at every start."""
    monkeypatch.setenv("KIZAMI_DATABASE_URL", "sqlite:///:memory:")
    ran = await _once(project, ROWS)
    assert (ran.code, "is in memory" in ran.err) == (3, True)


@pytest.mark.parametrize(
    ("url", "code", "sentence"),
    [
        ("postgresql://me:secret@host/shop", 2, "holds a password"),
        ("postgresql://host/shop?password=secret", 2, "holds a password"),
        ("not a url", 2, "--database is not a SQLAlchemy URL"),
        ("sqlite:///" + "x" * 5_000, 3, "Check the path"),
        ("sqlite:///absent.sqlite", 3, "There is no SQLite file absent.sqlite"),
        ("oracle+nosuch://host/shop", 3, "SQLAlchemy doesn't know databases of kind oracle+nosuch"),
        ("oracle+cx_oracle://host/shop", 3, "there is no module cx_Oracle"),
    ],
)
def test_a_database_url_that_cannot_be_used_is_a_sentence_without_its_secret(
    project: Project, url: str, code: int, sentence: str
) -> None:
    ran = project.run("mirror", "--query", "SELECT 1", "--channel", CHANNEL, "--every", "5m", "--database", url)
    assert ran.code == code
    assert sentence in ran.err
    assert "secret" not in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ((), 2, "needs --cron or --every"),
        (("--every", "5m", "--cron", "* * * * *"), 2, "needs --cron or --every"),
        (("--every", "soon"), 2, "--every is 'soon'"),
        (("--cron", "61 * * * *"), 2, "61"),
        (("--cron", "* * * * *", "--time-zone", "Mars/Base"), 2, "Mars/Base"),
        (("--every", "5m", "--time-zone", "Mars/Base"), 2, "Mars/Base"),
        (("--every", "5m", "--name", "a b"), 2, "name 'a b' is not allowed"),
        (("--every", "5m", "--channel", "general"), 2, "'general' is not a channel id"),
    ],
)
def test_wrong_options_are_refused_before_anything_starts(
    project: Project, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    ran = project.run("mirror", "--query", "SELECT 1", "--channel", CHANNEL, *arguments)
    assert (ran.code, sentence in ran.err) == (code, True)
    assert not (project.folder / "kizami.db").exists()


def test_without_a_token_or_database_the_remedy_names_the_variable(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLACK_BOT_TOKEN")
    ran = project.run("mirror", "--query", "SELECT 1", "--channel", CHANNEL, "--every", "5m")
    assert (ran.code, "SLACK_BOT_TOKEN" in ran.err) == (3, True)
    monkeypatch.delenv("KIZAMI_MIRROR_DATABASE_URL")
    ran = project.run("mirror", "--query", "SELECT 1", "--channel", CHANNEL, "--every", "5m")
    assert (ran.code, "KIZAMI_MIRROR_DATABASE_URL" in ran.err) == (3, True)


def test_mirrors_are_told_apart_by_channel_and_title() -> None:
    names = {default_name(*pair) for pair in (("C0A", "x"), ("C0A", "y"), ("C0B", "x"))}
    assert len(names) == 3
    assert default_name("C0A", "x") in names
    assert len(default_name("C" * 200, "x")) <= 64
