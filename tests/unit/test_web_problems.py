from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import kizami
from kizami.core.errors import KizamiError, LeaseHeldError, StoreBusyError
from kizami.web.problems import STATUSES, problem_of

_BESIDE_THE_WEB = ("kizami.cli", "kizami.demo", "kizami.sandbox", "kizami.testing")


def _errors_below(kind: type[KizamiError]) -> Iterator[type[KizamiError]]:
    yield kind
    for inner in kind.__subclasses__():
        yield from _errors_below(inner)


def _codes() -> set[str]:
    """Return the code of every error that can reach the web: those of all floors below it."""
    for module in pkgutil.walk_packages(kizami.__path__, "kizami."):
        if not module.name.startswith(_BESIDE_THE_WEB):
            importlib.import_module(module.name)
    ours = [one for one in _errors_below(KizamiError) if one.__module__.startswith("kizami.")]
    return {one.code for one in ours if not one.__module__.startswith(_BESIDE_THE_WEB)}


def test_every_error_has_a_status() -> None:
    assert _codes() - set(STATUSES) == set()


def test_every_status_is_one_that_the_api_promises() -> None:
    assert set(STATUSES.values()) <= {400, 401, 403, 404, 405, 409, 410, 413, 415, 500, 501, 503}


def test_a_problem_tells_code_message_remedy_and_path() -> None:
    problem = problem_of(KizamiError("It broke.", remedy="Mend it.", path="a.b"))
    assert (problem.status, problem.code, problem.message) == (500, "kizami_error", "It broke.")
    assert (problem.remedy, problem.path) == ("Mend it.", "a.b")


def test_a_held_lease_tells_its_holder() -> None:
    problem = problem_of(LeaseHeldError("Held.", holder="job 1", started_at=1, heartbeat_at=2))
    assert problem.status == 409
    assert problem.error == "sync_in_progress"
    assert problem.holder is not None
    assert problem.holder.model_dump() == {"holder": "job 1", "started_at": 1, "heartbeat_at": 2}


def test_what_the_server_could_not_do_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert problem_of(StoreBusyError("Busy.")).status == 503
    assert "Busy." in caplog.text
