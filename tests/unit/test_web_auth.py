from __future__ import annotations

import pytest

from kizami.core.errors import ConfigurationError
from kizami.web.auth import OPERATOR_VARIABLE, VIEWER_VARIABLE, Auth, Role, csrf_token_for

_ONE = "1" * 16
_OTHER = "2" * 16


def test_an_environment_without_tokens_configures_nothing() -> None:
    assert Auth.from_environment({}) is None
    assert Auth.from_environment({OPERATOR_VARIABLE: "", VIEWER_VARIABLE: ""}) is None


def test_each_variable_gives_its_role_and_nothing_else_does() -> None:
    auth = Auth.from_environment({OPERATOR_VARIABLE: _ONE, VIEWER_VARIABLE: _OTHER})
    assert auth is not None
    assert [auth.role_of(token) for token in (_ONE, _OTHER, "", "é", _ONE + "1")] == [
        Role.OPERATOR,
        Role.VIEWER,
        None,
        None,
        None,
    ]


def test_a_viewer_alone_leaves_nobody_who_may_act() -> None:
    auth = Auth.from_environment({VIEWER_VARIABLE: _OTHER})
    assert auth is not None
    assert auth.role_of(_OTHER) is Role.VIEWER
    assert auth.role_of("") is None


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


def test_a_rotated_token_counts_at_once() -> None:
    tokens = [_ONE]
    auth = Auth(operator=lambda: tokens[0])
    assert auth.role_of(_ONE) is Role.OPERATOR
    tokens[0] = _OTHER
    assert auth.role_of(_ONE) is None
    assert auth.role_of(_OTHER) is Role.OPERATOR


def test_a_source_that_gives_nothing_lets_nobody_in() -> None:
    assert Auth(operator=lambda: "").role_of("") is None


def test_a_form_s_token_belongs_to_one_login_and_does_not_tell_it() -> None:
    assert csrf_token_for(_ONE) != csrf_token_for(_OTHER)
    assert _ONE not in csrf_token_for(_ONE)
