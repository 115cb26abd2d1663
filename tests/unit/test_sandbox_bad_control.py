from __future__ import annotations

import httpx
import pytest

from kizami.core.errors import InvalidInputError
from kizami.sandbox.faults import Fault, FaultMix
from kizami.sandbox.server import Sandbox


def _plan(fault: str) -> str:
    return f'{{"method": "chat.postMessage", "faults": [{fault}]}}'


@pytest.mark.parametrize(
    "body",
    [
        _plan('{"fault": "nosuch"}'),
        _plan('{"fault": "hang", "seconds": -1}'),
        _plan('{"fault": "hang", "seconds": 1e999}'),
        _plan('{"fault": "hang", "seconds": NaN}'),
        _plan('{"fault": "slow", "seconds": "x"}'),
        _plan('{"fault": "rate_limited", "retry_after": NaN}'),
        _plan('{"fault": "rate_limited", "header": "a\\r\\nb: c"}'),
        _plan('{"fault": "server_error", "status": 5}'),
        _plan('{"fault": "server_error", "nosuch": 5}'),
        '{"faults": [{"fault": "hang"}]}',
        '{"mix": {"chances": [{"probability": NaN, "fault": "hang"}]}}',
        '{"mix": {"chances": [{"probability": 2, "fault": "hang"}]}}',
        '{"mix": {"seed": 1.5, "chances": []}}',
        "[" * 10_000,
        "{",
        "",
    ],
)
async def test_a_plan_that_can_not_be_carried_out_is_refused(body: str) -> None:
    sandbox = Sandbox()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(sandbox.app), base_url="http://localhost") as asking:
        answer = await asking.post("/sandbox/faults", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400, answer.text
    assert answer.json()["message"]
    assert not sandbox.faults.waiting()
    assert sandbox.faults.mix is None


@pytest.mark.parametrize("query", ["after=x", "after=-1", "limit=-5", "limit=" + "9" * 5_000, "after=1.5"])
async def test_a_number_that_is_none_is_refused_by_name(query: str) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(Sandbox().app), base_url="http://localhost") as asking:
        answer = await asking.get(f"/sandbox/log?{query}")
    assert answer.status_code == 400
    assert answer.json()["message"].startswith(f"{query.partition('=')[0]} is ")


def test_faults_in_code_are_checked_too() -> None:
    with pytest.raises(InvalidInputError, match=r"hold_s inf\. Give 0 to 1,000,000 seconds"):
        Fault.slow(float("inf"))
    with pytest.raises(InvalidInputError, match="not shares of one whole"):
        FaultMix(1, [(float("nan"), Fault.slow())])
