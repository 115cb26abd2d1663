from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest

from tests.unit.cli_project import Project, project_in


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Project:
    return project_in(tmp_path, capsys, monkeypatch)


@pytest.fixture
def on_postgres(project: Project, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("KIZAMI_DATABASE_URL", postgres_url)
    return project


def test_a_check_changes_nothing_and_says_what_is_missing(on_postgres: Project, postgres_url: str) -> None:
    ran = on_postgres.run("migrate", "--check")
    assert (ran.code, ran.err) == (1, "")
    assert "1 initial: missing" in ran.out
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT to_regclass('kizami_jobs')").fetchone() == (None,)


def test_the_printed_sql_does_what_the_command_does(on_postgres: Project, postgres_url: str) -> None:
    printed = on_postgres.run("migrate", "--dry-run").out
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(printed.encode())
    ran = on_postgres.run("migrate", "--check")
    assert (ran.code, "is up to date" in ran.out) == (0, True)


def test_a_migration_is_applied_once(on_postgres: Project) -> None:
    assert json.loads(on_postgres.run("migrate", "--json").out)["applied"] == [
        {"number": 1, "name": "initial"},
        {"number": 2, "name": "claims"},
    ]
    assert json.loads(on_postgres.run("migrate", "--json").out)["applied"] == []


def test_an_unmigrated_database_is_refused_with_the_remedy(on_postgres: Project) -> None:
    ran = on_postgres.run("jobs", "list", "reports:app")
    assert (ran.code, ran.out) == (4, "")
    assert "lacks the migration 1 (initial), 2 (claims). Run `kizami migrate`." in ran.err


def test_a_sqlite_file_migrates_by_itself_and_is_told_so(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIZAMI_DATABASE_URL", "sqlite:///mine.db")
    assert project.run("migrate", "--check").code == 1
    ran = project.run("migrate")
    assert (ran.code, "1 initial: applied" in ran.out, "migrates by itself" in ran.out) == (0, True, True)
    assert project.run("migrate", "--check").code == 0
