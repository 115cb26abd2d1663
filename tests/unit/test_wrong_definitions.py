"""Definitions with values of the wrong type: our own error that names the field, never Python's."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kizami import Kizami, LeaseSettings, WorkerSettings
from kizami.core.errors import ConfigurationError, DefinitionError, KizamiError
from kizami.store.sqlite.url import path_of

FOREIGN: list[Any] = [5, 5.0, True, "", b"x", [1], [None], {}, {"a": 1}, object(), float("nan")]


@pytest.mark.parametrize("value", [*FOREIGN, None], ids=repr)
def test_an_app_is_refused_by_field(value: Any) -> None:
    with pytest.raises(DefinitionError, match="App name"):
        Kizami(value)
    for field in ("database_url", "settings") if not (value is None or isinstance(value, str)) else ():
        with pytest.raises((ConfigurationError, DefinitionError), match=field) as caught:
            Kizami("app", **{field: value})
        assert caught.value.remedy


def test_an_empty_url_is_no_default() -> None:
    with pytest.raises(ConfigurationError, match="has no scheme"):
        path_of("")
    with pytest.raises(ConfigurationError, match="has no scheme"):
        _ = Kizami("app", database_url="").store


@pytest.mark.parametrize("value", FOREIGN, ids=repr)
@pytest.mark.parametrize(
    "field",
    [
        *("name", "target", "cron", "every", "time_zone", "overlap", "driver", "lease", "window"),
        *("priority", "max_attempts", "timeout", "backoff", "guarantee", "nosuch", "unique_key", "concurrency_key"),
    ],
)
def test_a_schedule_is_refused_by_field(field: str, value: Any) -> None:
    """B020: values that another library would raise its own errors for."""
    app = Kizami("app")
    performer = app.performer(_performed)
    given: dict[str, Any] = {"name": "n", "target": performer, "cron": "* * * * *"}
    if field == "every":
        del given["cron"]
    given[field] = value
    if type(value) is int and field in {"priority", "max_attempts"}:
        app.schedule(given.pop("name"), given.pop("target"), **given)
        return
    with pytest.raises(KizamiError) as caught:
        app.schedule(given.pop("name"), given.pop("target"), **given)
    assert caught.value.remedy
    assert isinstance(caught.value, DefinitionError)
    assert app.definitions == ()


def _performed() -> None:
    """Do nothing."""


@pytest.mark.parametrize("every", [timedelta(days=36_501), timedelta(days=999_999_999)])
def test_an_interval_stays_within_the_years_that_have_local_times(every: timedelta) -> None:
    app = Kizami("app")
    with pytest.raises(DefinitionError, match="longer than 100 years"):
        app.schedule("n", app.performer(_performed), every=every)


@pytest.mark.parametrize("value", [-1, 1.5, True, "x", None, 10**20, float("nan")])
@pytest.mark.parametrize(
    "field", ["concurrency", "grace_ms", "poll_ms", "stop_ms", "payload_ms", "retention_ms", "lease"]
)
def test_settings_are_refused_by_field(field: str, value: Any) -> None:
    with pytest.raises(DefinitionError, match=f"WorkerSettings: {field} is") as caught:
        WorkerSettings(**{field: value})
    assert caught.value.remedy


@pytest.mark.parametrize(("field", "value"), [("grace_ms", 0), ("grace_ms", 99), ("heartbeat_write_ms", 0)])
def test_settings_that_would_lose_healthy_jobs_are_refused(field: str, value: Any) -> None:
    with pytest.raises(DefinitionError, match=f"WorkerSettings: {field} is {value}"):
        WorkerSettings(**{field: value})


@pytest.mark.parametrize(("beat_ms", "stale_ms"), [(120_000, 120_000), (1_000, 1_999), (600_000, 500)])
def test_a_lease_that_a_healthy_holder_would_lose_is_refused(beat_ms: int, stale_ms: int) -> None:
    with pytest.raises(DefinitionError, match=f"stale_ms is {stale_ms}, .* every {beat_ms} ms") as caught:
        LeaseSettings(beat_ms=beat_ms, stale_ms=stale_ms)
    assert "twice beat_ms" in str(caught.value.remedy)
    LeaseSettings(beat_ms=beat_ms, stale_ms=2 * beat_ms)


@pytest.mark.parametrize("value", [0, -1, 1.5, "x", None])
@pytest.mark.parametrize("field", ["beat_ms", "stale_ms"])
def test_a_lease_is_refused_by_field(field: str, value: Any) -> None:
    with pytest.raises(DefinitionError, match=f"LeaseSettings: {field} is"):
        LeaseSettings(**{field: value})
