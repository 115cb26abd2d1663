from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from kizami import Kizami
from kizami.core.errors import ConfigurationError
from kizami.web.asgi import build
from kizami.web.auth import OPERATOR_VARIABLE, VIEWER_VARIABLE, Auth, Role, csrf_token_for
from kizami.web.token_source import Asking
from tests.crash.processes import until
from tests.unit.web_site import ORIGIN, client

_ONE = "1" * 16
_OTHER = "2" * 16


def test_an_environment_without_tokens_configures_nothing() -> None:
    assert Auth.from_environment({}) is None
    assert Auth.from_environment({OPERATOR_VARIABLE: "", VIEWER_VARIABLE: ""}) is None


async def test_each_variable_gives_its_role_and_nothing_else_does() -> None:
    auth = Auth.from_environment({OPERATOR_VARIABLE: _ONE, VIEWER_VARIABLE: _OTHER})
    assert auth is not None
    assert [await auth.role_of(token) for token in (_ONE, _OTHER, "", "é", _ONE + "1")] == [
        Role.OPERATOR,
        Role.VIEWER,
        None,
        None,
        None,
    ]


async def test_a_viewer_alone_leaves_nobody_who_may_act() -> None:
    auth = Auth.from_environment({VIEWER_VARIABLE: _OTHER})
    assert auth is not None
    assert await auth.role_of(_OTHER) is Role.VIEWER
    assert await auth.role_of("") is None


@pytest.mark.parametrize(
    "token", ["short", "with a space in it", "line\nbreak-line-break", "ひみつのことばひみつのことば!!"]
)
def test_an_unusable_token_is_refused_when_it_is_read_without_being_told(token: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Auth.from_environment({OPERATOR_VARIABLE: token})
    assert token not in str(refused.value)
    assert OPERATOR_VARIABLE in str(refused.value)


def test_two_roles_never_share_a_token() -> None:
    with pytest.raises(ConfigurationError, match="equal"):
        Auth.from_environment({OPERATOR_VARIABLE: _ONE, VIEWER_VARIABLE: _ONE})


def test_a_token_written_into_code_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="function"):
        Auth(operator=_ONE)  # type: ignore[arg-type]  # the mistake under test


def test_auth_without_any_source_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no role"):
        Auth()


async def test_a_rotated_token_counts_at_once() -> None:
    tokens = [_ONE]
    auth = Auth(operator=lambda: tokens[0])
    assert await auth.role_of(_ONE) is Role.OPERATOR
    tokens[0] = _OTHER
    assert await auth.role_of(_ONE) is None
    assert await auth.role_of(_OTHER) is Role.OPERATOR


async def test_a_source_that_gives_nothing_lets_nobody_in() -> None:
    assert await Auth(operator=lambda: "").role_of("") is None


def test_a_form_s_token_belongs_to_one_login_and_does_not_tell_it() -> None:
    assert csrf_token_for(_ONE) != csrf_token_for(_OTHER)
    assert _ONE not in csrf_token_for(_ONE)


async def test_an_async_source_is_awaited_and_what_is_no_text_lets_nobody_in() -> None:
    async def token() -> str:
        return _ONE

    assert await Auth(operator=token).role_of(_ONE) is Role.OPERATOR
    with pytest.raises(TypeError, match="returned int"):
        await Auth(operator=lambda: 5).role_of(_ONE)  # type: ignore[arg-type,return-value]  # the mistake under test


async def test_a_source_that_does_not_return_holds_up_no_loop_and_few_threads() -> None:
    released, begun = threading.Event(), list[int]()

    def hang() -> str:
        begun.append(1)
        released.wait()
        return _ONE

    asking = Asking(limit_ms=50, calls_max=2)
    try:
        for _ in range(4):
            with pytest.raises(TimeoutError):
                await asking.ask(hang)
        assert len(begun) == 2
    finally:
        released.set()

    async def is_free() -> bool:
        try:
            return await asking.ask(hang) == _ONE
        except TimeoutError:
            return False

    await until(is_free, "its threads have ended", seconds=30)


async def test_a_slow_source_is_503_for_programs_and_at_the_login(tmp_path: Path) -> None:
    """The loop goes on meanwhile: the probe answers."""
    released = threading.Event()
    auth = Auth(operator=lambda: str(released.wait()))
    object.__setattr__(auth, "_asking", Asking(limit_ms=50))
    app = Kizami(database_url=f"sqlite:///{tmp_path / 'kizami.db'}")
    try:
        async with app.running(worker=False), client(build(app, auth)) as asking:
            slow, probe = await asyncio.gather(
                asking.get("/api/jobs", headers={"Authorization": f"Bearer {_ONE}"}), asking.get("/healthz")
            )
            login = await asking.post("/login", data={"token": _ONE}, headers={"Origin": ORIGIN})
    finally:
        released.set()
    assert probe.text == "ok"
    assert (slow.status_code, slow.json()["code"]) == (503, "tokens_slow")
    assert login.status_code == 503
