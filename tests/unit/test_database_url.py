from __future__ import annotations

import pytest

from kizami.core.errors import ConfigurationError
from kizami.store.sqlite.url import path_of


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///kizami.db", "kizami.db"),
        ("sqlite:////var/lib/kizami.db", "/var/lib/kizami.db"),
        ("SQLite:///kizami.db", "kizami.db"),
        ("sqlite:///:memory:", ":memory:"),
        ("sqlite:///a%20b%3Fc%23d%25.db", "a b?c#d%.db"),
        ("sqlite:///刻み-%E5%88%BB.db", "刻み-刻.db"),
        ("sqlite:///odd\udcff.db", "odd\udcff.db"),
        ("sqlite:///a:b.db", "a:b.db"),
    ],
)
def test_a_url_names_a_file(url: str, path: str) -> None:
    assert path_of(url) == path


@pytest.mark.parametrize(
    ("url", "reason", "remedy"),
    [
        ("sqlite:///x.db?mode=ro", "has options (mode)", "Write sqlite:///x.db without it"),
        ("sqlite:///:memory:?cache=shared", "has options (cache)", "write %3F"),
        ("sqlite:///x.db#part", "has a fragment (part)", "write %23"),
        ("sqlite:///100%.db", "a % without two hexadecimal digits", "Write % as %25."),
        ("sqlite://x.db", "too few slashes to name the file x.db", "Write sqlite:///x.db."),
        ("sqlite:x.db", "too few slashes to name the file x.db", "Write sqlite:///x.db."),
        ("sqlite://", "names no file", "Write sqlite:///kizami.db"),
        ("sqlite:///", "names no file", "Write sqlite:///kizami.db"),
        ("sqlite:///%20", "names no file", "Write sqlite:///kizami.db"),
        ("sqlite:///a%00b", "names no file", "Write sqlite:///kizami.db"),
        ("sqlite:////", "names a folder", "sqlite:////kizami.db"),
        ("sqlite:///var/", "names a folder", "sqlite:///var/kizami.db"),
        ("sqlite:///file:x.db", "a URI of SQLite's own", "sqlite:///x.db"),
        ("sqlite:///:memory:x", "neither a file nor :memory:", "sqlite:///:memory:"),
        ("sqlite:///C:\\data\\x.db", "a Windows path", "a path of this machine"),
        ("sqlite:///C:/data/x.db", "a Windows path", "a path of this machine"),
        ("sqlite+aiosqlite:///x.db", "names the driver aiosqlite", "sqlite://"),
        ("postgresql://h/x", "'postgresql://h/x' names a PostgreSQL database", "KIZAMI_DATABASE_URL"),
        ("postgresql+psycopg://h/x", "names the driver psycopg", "postgresql://"),
        ("mysql://h/x", "MySQL database, which can not hold the state of Kizami", "sqlite:///kizami.db"),
        ("oracle://h/x", "has the scheme oracle", "sqlite:///kizami.db"),
        ("kizami.db", "has no scheme", "sqlite:///kizami.db"),
        (":memory:", "has no scheme", "sqlite:///kizami.db"),
        ("", "has no scheme", "sqlite:///kizami.db"),
        (5, "is of type int, not text", "sqlite:///kizami.db"),
    ],
)
def test_what_can_not_be_used_is_named_with_its_remedy(url: object, reason: str, remedy: str) -> None:
    """Nothing that was meant as something else becomes part of a file's name."""
    with pytest.raises(ConfigurationError) as caught:
        path_of(url)
    assert reason in caught.value.message
    assert remedy in str(caught.value.remedy)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cret@host/x",
        "postgresql://me:a@s3cret@host/x",
        "postgresql://host/x?password=s3cret",
        "mysql:me:s3cret@host",
        "sqlite://host?password=s3cret",
        "sqlite://me:s3cret@x.db",
        "sqlite:///x.db?key=s3cret",
    ],
)
def test_a_refusal_repeats_no_secret(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        path_of(url)
    assert "s3cret" not in str(caught.value)


def test_a_refusal_of_a_long_url_is_short() -> None:
    with pytest.raises(ConfigurationError) as caught:
        path_of("oracle://" + "x" * 5_000)
    assert len(str(caught.value)) < 500
