from __future__ import annotations

import traceback

import pytest

from kizami.core.errors import ConfigurationError, StoreError
from kizami.runtime import SystemRuntime
from kizami.store.opening import store_at
from kizami.store.postgres.connection import connect
from kizami.store.postgres.place import place_of


def options_of(url: str) -> set[str]:
    return set(place_of(url).conninfo.split(" "))


def test_both_schemes_name_a_postgres() -> None:
    assert place_of("postgresql://ann@db/shop") == place_of("postgres://ann@db/shop")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:sesame@db.example:6432/shop", "shop on db.example:6432"),
        ("postgresql://ann:sesame@a,b:5433/shop", "shop on a, b:5433"),
        ("postgresql://a:1,b:2/shop", "shop on a:1, b:2"),
        ("postgresql://ann@/shop?host=/run/postgresql", "shop on /run/postgresql"),
        ("postgresql://ann@db?password=sesame", "ann on db"),
        ("postgresql://ann:open?sesame=1@db/shop", "shop on db"),
        ("postgresql://?service=production", "service production"),
    ],
)
def test_a_place_is_told_without_its_password(url: str, shown: str) -> None:
    place = place_of(url)
    assert place.shown == shown
    assert "sesame" not in repr(place)


def test_what_a_url_says_goes_before_our_defaults() -> None:
    assert {"application_name=kizami", "connect_timeout=10"} <= options_of("postgresql://db/shop")
    said = options_of("postgresql://db/shop?application_name=mine&connect_timeout=3&sslmode=require")
    assert {"application_name=mine", "connect_timeout=3", "sslmode=require"} <= said


@pytest.mark.parametrize("option", ["client_encoding=latin1", "replication=database", "nosuch=1"])
def test_an_option_that_can_not_be_is_named(option: str) -> None:
    with pytest.raises(ConfigurationError, match=option.partition("=")[0]) as caught:
        place_of(f"postgresql://ann:sesame@db/shop?{option}")
    assert caught.value.remedy


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:open@sesame@db/shop",
        "postgresql://ann:open/sesame@db/shop",
        "postgresql://ann:12/sesame@db/shop",
        "postgresql://ann:sesame%zz@db/shop",
        "postgresql://ann:sesame@[::1/shop",
        "postgresql://ann:sesame@db:port/shop",
    ],
)
def test_a_password_that_tears_its_url_is_not_shown(url: str) -> None:
    with pytest.raises(ConfigurationError, match="percent-encoded") as caught:
        place_of(url)
    assert "sesame" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("url", ["mysql://ann:sesame@db/shop", "postgresql+psycopg://ann:sesame@db/shop", "sesame"])
def test_another_kind_of_database_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ConfigurationError, match="postgresql://") as caught:
        store_at(url, SystemRuntime())
    assert "ann:sesame" not in str(caught.value)


@pytest.mark.parametrize("url", ["postgresql://ann:sesame@127.0.0.1:1/shop"])
def test_a_server_that_does_not_answer_is_told_without_the_password(url: str) -> None:
    with pytest.raises(StoreError, match=r"shop on 127\.0\.0\.1:1 can't be reached") as caught:
        connect(place_of(url))
    told = "".join(traceback.format_exception(caught.value))
    assert "sesame" not in told
    assert caught.value.remedy


def test_a_missing_driver_is_told_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("kizami.store.postgres.place", "kizami.store.postgres.store"):
        monkeypatch.delitem(__import__("sys").modules, name, raising=False)
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(ConfigurationError, match=r"Install kizami\[postgres\]"):
        store_at("postgresql://db/shop", SystemRuntime())
