"""What makes two definitions the same: every process of the same code must say so."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any, TypedDict

import pytest
from pydantic import BaseModel

from kizami import Kizami
from kizami.core.errors import DefinitionError
from tests.crash.processes import ROOT

PROGRAM = """
from kizami import Kizami
app = Kizami()

@app.performer
def take(payload): ...

payload = {"words": {"tea", "rice", "salt", "oil"}, "pairs": {frozenset({"a", "b", "c"}), frozenset({"d", "e"})}}
app.schedule("s", take, payload=payload, cron="0 3 * * *")
print(app.definitions[0].scheduled().definition.fingerprint)
"""


class Order(BaseModel):
    number: int
    tags: set[str] = set()


class Own(TypedDict):
    number: int


def fingerprint(payload: object, performer: Callable[..., object] | None = None) -> str:
    app = Kizami()

    def take(payload: Any) -> None: ...

    app.schedule("s", app.performer(performer or take), payload=payload, cron="0 3 * * *")
    return app.definitions[0].scheduled().definition.fingerprint


def test_every_process_finds_the_same_fingerprint() -> None:
    """Sets come in another order in each process."""
    seen = set()
    for seed in range(1, 6):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        command = [sys.executable, "-c", PROGRAM]
        ran = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
        seen.add(ran.stdout)
    assert len(seen) == 1


def test_a_payload_counts_by_the_json_that_its_job_would_get() -> None:
    def take(payload: Order) -> None: ...

    same = [Order(number=7, tags={"b", "a"}), {"number": "7", "tags": ["a", "b"]}, {"tags": ("b", "a"), "number": 7}]
    assert len({fingerprint(each, take) for each in same}) == 1
    assert fingerprint(Order(number=8), take) != fingerprint(Order(number=7), take)
    assert fingerprint([1, 2]) != fingerprint([2, 1])
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})


def test_a_payload_function_counts_by_its_name() -> None:
    def first(_: object) -> int:
        return 1

    def second(_: object) -> int:
        return 2

    assert fingerprint(first) != fingerprint(second)
    assert fingerprint(functools.partial(first)) == fingerprint(first)


@pytest.mark.parametrize("payload", [object(), {"client": object()}, [float("nan")]], ids=["object", "inside", "nan"])
def test_a_payload_that_is_no_json_is_refused_when_it_is_defined(payload: object) -> None:
    with pytest.raises(DefinitionError, match=r"Schedule s: .*payload"):
        fingerprint(payload)


def test_typings_own_typed_dict_is_refused_with_the_one_to_use_where_it_cannot_be_read() -> None:
    """Before Python 3.12 it doesn't say which of its fields are required."""
    app = Kizami()

    def take(payload: Own) -> None: ...

    if sys.version_info >= (3, 12):
        assert app.performer(take).takes_payload
        return
    with pytest.raises(DefinitionError, match=r"Performer take: .*Import TypedDict from typing_extensions"):
        app.performer(take)


def test_a_payload_for_a_performer_that_takes_none_is_refused_when_it_is_defined() -> None:
    def take() -> None: ...

    with pytest.raises(DefinitionError, match=r"Schedule s: .*payload is refused"):
        fingerprint(7, take)
