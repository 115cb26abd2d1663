from __future__ import annotations

import json

import pytest

from kizami.sandbox.arguments import Arguments, Decoded, Request, decode
from kizami.sandbox.refusals import RefusedError

JSON = "application/json; charset=utf-8"
FORM = "application/x-www-form-urlencoded"


def post(body: bytes, kind: str = JSON, *, query: str = "", takes_json: bool = True, **headers: str) -> Decoded:
    return decode(Request("POST", {"content-type": kind, **headers}, query, body), takes_json=takes_json)


def test_the_same_arguments_come_by_json_form_and_query() -> None:
    blocks = [{"type": "divider"}]
    by_json = post(json.dumps({"channel": "C1", "blocks": blocks, "unfurl_links": False}).encode())
    by_form = post(b"channel=C1&unfurl_links=false&blocks=%5B%7B%22type%22%3A%22divider%22%7D%5D", FORM)
    by_query = post(b"", query="channel=C1&unfurl_links=0&blocks=%5B%7B%22type%22%3A%22divider%22%7D%5D")
    for decoded in (by_json, by_form, by_query):
        assert decoded.arguments.required("channel") == "C1"
        assert decoded.arguments.structure("blocks", "bad") == blocks
        assert decoded.arguments.flag("unfurl_links") is False


def test_a_token_comes_by_header_or_form_but_not_by_address_or_json() -> None:
    assert [post(b"{}", authorization="Bearer t1").token, post(b"token=t2", FORM).token] == ["t1", "t2"]
    assert post(b"", query="token=xoxb-3").token is None
    assert post(b'{"token": "xoxb-4"}').token is None


@pytest.mark.parametrize(
    ("kind", "body", "error"),
    [
        (JSON, b"{", "invalid_json"),
        (JSON, b'{"limit": NaN}', "invalid_json"),
        (JSON, b"\xff", "invalid_json"),
        (JSON, b"[" * 100_000, "invalid_json"),
        (JSON, b"[1]", "json_not_object"),
        (FORM, b"\xff\xfe", "invalid_form_data"),
        (FORM, b"a=%FF", "invalid_form_data"),
        ("text/csv", b"a,b", "invalid_post_type"),
        ("", b"a=b", "missing_post_type"),
        ("application/json; charset=utf-7", b"{}", "invalid_charset"),
        (JSON, b'{"a b": 1}', "invalid_arg_name"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_by_name(kind: str, body: bytes, error: str) -> None:
    with pytest.raises(RefusedError) as refused:
        post(body, kind)
    assert refused.value.error == error


@pytest.mark.parametrize(
    ("kind", "body", "warnings"),
    [
        (JSON, b"{}", ()),
        ("application/json", b"{}", ("missing_charset",)),
        (FORM, b"a=b", ()),
        (FORM + "; charset=utf-8", b"a=b", ("superfluous_charset",)),
    ],
)
def test_a_charset_too_many_or_too_few_is_warned_about(kind: str, body: bytes, warnings: tuple[str, ...]) -> None:
    assert post(body, kind).warnings == warnings


def test_json_is_not_looked_at_where_a_method_takes_none() -> None:
    assert post(b'{"channel": "C1"}', takes_json=False).arguments.values == {}


@pytest.mark.parametrize("value", ["maybe", "2", ["x"], {"a": 1}])
def test_a_flag_is_true_false_one_or_zero(value: object) -> None:
    with pytest.raises(RefusedError):
        Arguments({"flag": value}).flag("flag")


@pytest.mark.parametrize(("value", "flag"), [(True, True), ("1", True), ("TRUE", True), (0, False), (None, False)])
def test_a_flag_is_read_in_every_form(value: object, *, flag: bool) -> None:
    assert Arguments({"flag": value}).flag("flag") is flag


@pytest.mark.parametrize("value", ["-1", "1.5", "many", "٣", "1e3", True, "9" * 10])
def test_a_number_is_digits_only(value: object) -> None:
    with pytest.raises(RefusedError):
        Arguments({"limit": value}).number("limit", 100, "invalid_limit")


def test_a_number_may_stand_for_a_text() -> None:
    arguments = Arguments({"oldest": 1_796_000_000, "limit": 15, "text": ["x"]})
    assert (arguments.text("oldest"), arguments.number("limit", 100, "invalid_limit")) == ("1796000000", 15)
    with pytest.raises(RefusedError):
        arguments.text("text")


def test_a_missing_argument_is_named() -> None:
    with pytest.raises(RefusedError) as refused:
        Arguments({"channel": None}).required("channel")
    assert refused.value.answer() == {
        "ok": False,
        "error": "invalid_arguments",
        "errors": ["missing required field: channel"],
        "response_metadata": {"messages": ["[ERROR] missing required field: channel"]},
    }
