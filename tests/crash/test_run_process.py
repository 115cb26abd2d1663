from __future__ import annotations

import asyncio
import json
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO
from urllib.request import urlopen

import pytest

from kizami.sandbox.hooks import Call, Phase
from kizami.sandbox.server import Sandbox
from tests.unit.cli_project import OUR_VARIABLES, kizami_process, process_environment

APP = """
import threading
from pathlib import Path
from kizami import Kizami

app = Kizami("tiny")

@app.performer
def hello() -> str:
    return "hi"

@app.performer
def forever() -> None:
    Path("started").touch()
    print("started", flush=True)
    threading.Event().wait()

app.schedule("morning", hello, cron="0 9 * * *", time_zone="Asia/Tokyo", driver="external")
app.schedule("stuck", forever, cron="0 9 * * *", driver="external")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in OUR_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "tiny.py").write_text(APP, encoding="utf-8")
    return tmp_path


@contextmanager
def _started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start `kizami` in a folder; it is killed at the end if it hasn't ended by itself."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kizami", *arguments],
        cwd=folder,
        env=process_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        with process:
            yield process
            process.kill()
    finally:
        process.kill()


def _line_with(stream: IO[str] | None, pattern: str) -> re.Match[str]:
    """Read lines until one matches; the end of the stream is a failure that shows all of them."""
    assert stream is not None
    seen: list[str] = []
    for line in stream:
        seen.append(line)
        if found := re.search(pattern, line):
            return found
    raise AssertionError("".join(seen))


def _lines_until(stream: IO[str] | None, last: str) -> list[str]:
    """Read lines up to the one that holds `last`."""
    assert stream is not None
    seen: list[str] = []
    while not seen or (seen[-1] and last not in seen[-1]):
        seen.append(stream.readline())
    return seen


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_run_is_ready_performs_and_stops_gracefully_at_the_first_signal(folder: Path, number: signal.Signals) -> None:
    with _started(folder, "run", "tiny:app", "--port", "0") as process:
        _line_with(process.stderr, r"no token is configured.*: to open the pages, set KIZAMI_TOKEN")
        url = _line_with(process.stderr, r"the pages are at (http://\S+)")[1]
        _line_with(process.stderr, "app tiny is running")
        with urlopen(f"{url}/readyz") as answer:  # noqa: S310 - an address that our own process named
            assert answer.read() == b"ready"
        ticked = kizami_process(folder, "tick", "tiny:app", "morning", "--wait", "30", "--json")
        assert (ticked.returncode, json.loads(ticked.stdout)["job_state"]) == (0, "COMPLETED")
        process.send_signal(number)
        rest = process.communicate()
        assert process.returncode == 0
        assert "app tiny has stopped" in rest[1]
        assert "Traceback" not in rest[1]


def test_pages_without_a_token_are_warned_of_once(folder: Path) -> None:
    with _started(folder, "run", "tiny:app", "--port", "0") as process:
        seen = _lines_until(process.stderr, "app tiny is running")
    assert [line for line in seen if "WARNING" in line] == [line for line in seen if "KIZAMI_TOKEN" in line]
    assert sum("KIZAMI_TOKEN" in line for line in seen) == 1


def test_a_second_signal_ends_a_process_that_still_waits_for_a_job(folder: Path) -> None:
    with _started(folder, "run", "tiny:app", "--no-web") as process:
        _line_with(process.stderr, "app tiny is running")
        assert kizami_process(folder, "schedules", "trigger", "tiny:app", "stuck").returncode == 0
        _line_with(process.stdout, "started")
        process.send_signal(signal.SIGTERM)
        _line_with(process.stderr, "SIGTERM: stopping")
        while process.poll() is None:  # until one comes late enough to be a second wish
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
        process.communicate()
        assert process.returncode == 128 + signal.SIGTERM


def test_a_taken_port_fails_before_anything_starts(folder: Path) -> None:
    with _started(folder, "run", "tiny:app", "--port", "0") as first:
        port = _line_with(first.stderr, r"http://127\.0\.0\.1:(\d+)")[1]
        _line_with(first.stderr, "app tiny is running")
        (folder / "other").mkdir()
        (folder / "other" / "tiny.py").write_text(APP, encoding="utf-8")
        second = kizami_process(folder / "other", "run", "tiny:app", "--port", port)
        assert (second.returncode, f"port {port}" in second.stderr) == (3, True)
        assert "Traceback" not in second.stderr
        assert not (folder / "other" / "kizami.db").exists()


def test_a_database_that_cannot_be_opened_ends_run_with_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIZAMI_DATABASE_URL", "sqlite:///nowhere/kizami.db")
    done = kizami_process(folder, "run", "tiny:app", "--port", "0")
    assert (done.returncode, done.stderr.splitlines()[-1].startswith("kizami: ")) == (4, True)
    assert "Traceback" not in done.stderr


def test_json_logs_are_json_on_every_line(folder: Path) -> None:
    with _started(folder, "run", "tiny:app", "--no-web", "--json") as process:
        _line_with(process.stderr, "app tiny is running")
        process.send_signal(signal.SIGTERM)
        rest = process.communicate()[1]
        assert process.returncode == 0
        assert [json.loads(line)["level"] for line in rest.splitlines()] == ["info"] * len(rest.splitlines())
        assert "has stopped" in rest


def test_the_sandbox_prints_what_a_mirror_needs_and_a_mirror_posts_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _started(folder, "sandbox", "--port", "0", "--no-limits") as process:
        monkeypatch.setenv("SLACK_API_URL", _line_with(process.stdout, r"^export SLACK_API_URL=(\S+)$")[1])
        monkeypatch.setenv("SLACK_BOT_TOKEN", _line_with(process.stdout, r"^export SLACK_BOT_TOKEN=(\S+)$")[1])
        monkeypatch.setenv("KIZAMI_MIRROR_DATABASE_URL", "sqlite://")
        done = kizami_process(folder, "mirror", "--query", "SELECT 1 AS one", "--channel", "C0STATUS", "--once")
        assert (done.returncode, done.stderr) == (0, "")
        process.send_signal(signal.SIGTERM)
        process.communicate()
        assert process.returncode == 0


async def test_a_mirror_outlives_a_failing_query_and_shows_the_rows_once_it_works(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = asyncio.Event()

    async def on_accepted(_: Call) -> None:
        shown.set()

    sandbox = Sandbox()
    sandbox.hooks.add(Phase.ACCEPTED, on_accepted, method="chat.postMessage")
    with closing(sqlite3.connect(folder / "shop.sqlite")) as shop:
        shop.execute("CREATE TABLE other (id INTEGER)")
        async with sandbox.serving():
            monkeypatch.setenv("SLACK_API_URL", f"{sandbox.url.rstrip('/')}/api/")
            monkeypatch.setenv("KIZAMI_MIRROR_DATABASE_URL", "sqlite:///shop.sqlite")
            options = ("--query", "SELECT * FROM orders", "--channel", "C0STATUS", "--every", "1s", "--no-web")
            with _started(folder, "mirror", *options) as process:
                await asyncio.to_thread(_line_with, process.stderr, "failed: no such table: orders")
                assert not sandbox.log.posts()
                shop.execute("CREATE TABLE orders (id INTEGER)")
                async with asyncio.timeout(60):
                    await shown.wait()
                process.send_signal(signal.SIGTERM)
                await asyncio.to_thread(process.communicate)
                assert process.returncode == 0
