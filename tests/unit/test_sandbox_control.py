from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import httpx
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from kizami.sandbox.faults import FAULTS, Fault, FaultMix
from kizami.sandbox.server import Sandbox
from kizami.sandbox.settings import SandboxSettings
from tests.unit.sandbox_slack import ALERTS, STATUS, HandClock

pytest_plugins = ["tests.unit.sandbox_fixtures"]

WITH_TOKEN = SandboxSettings(control_token="let-me-in", rate_limited=False)  # noqa: S106 - made up for this test
PATHS = ("/sandbox/log", "/sandbox/faults", "/sandbox/channels", f"/sandbox/channels/{STATUS}/messages")


@pytest.fixture
async def control(sandbox: Sandbox) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"content-type": "application/json"}
    async with httpx.AsyncClient(base_url=sandbox.url, trust_env=False, headers=headers) as control:
        yield control


async def test_faults_are_queued_over_http(sandbox: Sandbox, slack: AsyncWebClient, control: httpx.AsyncClient) -> None:
    faults = [{"fault": "answer_lost", "reset": True}, {"fault": "rate_limited", "retry_after": 7, "header": None}]
    plan = {"method": "chat.postMessage", "channel": STATUS, "faults": faults}
    answer = await control.post("/sandbox/faults", json=plan)
    queued = {"method": "chat.postMessage", "channel": STATUS, "faults": ["answer_lost", "rate_limited"]}
    assert answer.json()["queued"] == [queued]
    assert sandbox.faults.waiting() == {
        ("chat.postMessage", STATUS): (Fault.answer_lost(reset=True), Fault.rate_limited(7, header=None))
    }
    with pytest.raises(aiohttp.ClientOSError):
        await slack.chat_postMessage(channel=STATUS, text="x")
    assert len(sandbox.log.posts()) == 1


async def test_a_mix_is_set_and_cleared_over_http(sandbox: Sandbox, control: httpx.AsyncClient) -> None:
    chances = [{"probability": 0.1, "fault": "accepted_late", "seconds": 9}]
    mix = {"seed": 7, "methods": ["chat.postMessage"], "chances": chances}
    shown = (await control.post("/sandbox/faults", json={"mix": mix})).json()["mix"]
    assert shown == {"seed": 7, "chances": [{"probability": 0.1, "fault": "accepted_late"}]}
    assert sandbox.faults.mix == FaultMix(7, [(0.1, Fault.accepted_late(9))], frozenset({"chat.postMessage"}))
    cleared = (await control.delete("/sandbox/faults")).json()
    assert (cleared["mix"], cleared["queued"]) == (None, [])


@pytest.mark.parametrize("name", sorted(FAULTS))
async def test_every_fault_has_its_name_over_http(sandbox: Sandbox, control: httpx.AsyncClient, name: str) -> None:
    entry = {"fault": name, "error": "is_archived"} if name == "refused" else {"fault": name}
    assert (await control.post("/sandbox/faults", json={"method": "auth.test", "faults": [entry]})).status_code == 200
    [[fault]] = sandbox.faults.waiting().values()
    assert fault.name == name


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"method": "auth.test", "faults": [{"fault": "explode"}]}, "explode"),
        ({"method": "auth.test", "faults": [{"seconds": 1}]}, "No fault"),
        ({"method": "auth.test", "faults": [{"fault": "hang", "seconds": "long"}]}, "seconds"),
        ({"method": "auth.test", "faults": [{"fault": "hang", "wrong": 1}]}, "wrong"),
        ({"faults": [{"fault": "hang"}]}, "method"),
        ({"mix": {"chances": [{"probability": 2, "fault": "hang"}]}}, "shares"),
        ({"wrong": 1}, "wrong"),
    ],
)
async def test_a_plan_that_cannot_be_is_refused_with_its_reason(
    sandbox: Sandbox, control: httpx.AsyncClient, body: dict[str, object], word: str
) -> None:
    answer = await control.post("/sandbox/faults", json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_input")
    assert word in answer.json()["message"]
    assert not sandbox.faults.waiting()
    assert sandbox.faults.mix is None


async def test_the_log_is_read_over_http(slack: AsyncWebClient, control: httpx.AsyncClient) -> None:
    await slack.auth_test()
    await slack.chat_postMessage(channel=STATUS, text="1")
    await slack.chat_postMessage(channel=ALERTS, text="2")
    log = (await control.get("/sandbox/log", params={"method": "chat.postMessage", "channel": ALERTS})).json()
    assert [(entry["seq"], entry["text"], entry["answered"]) for entry in log["entries"]] == [(3, "2", True)]
    assert log["last_seq"] == 3
    later = (await control.get("/sandbox/log", params={"after": 1, "limit": 1})).json()
    assert [entry["seq"] for entry in later["entries"]] == [2]
    assert (await control.get("/sandbox/log", params={"after": "x"})).status_code == 400


async def test_channels_are_listed_added_and_changed(slack: AsyncWebClient, control: httpx.AsyncClient) -> None:
    await slack.chat_postMessage(channel=STATUS, text="stays")
    await control.post("/sandbox/channels", json={"id": "C0NEW", "name": "new", "is_member": False})
    changed = await control.post("/sandbox/channels", json={"id": STATUS, "name": "status", "is_archived": True})
    assert changed.json()["messages"] == 1
    listed = (await control.get("/sandbox/channels")).json()["channels"]
    assert [(channel["id"], channel["is_archived"], channel["members"]) for channel in listed] == [
        (STATUS, True, ["U0KIZAMI"]),
        (ALERTS, False, ["U0KIZAMI"]),
        ("C0NEW", False, []),
    ]
    assert (await control.post("/sandbox/channels", json={"id": "C0NEW"})).status_code == 400


async def test_a_person_writes_and_deletes_over_http(slack: AsyncWebClient, control: httpx.AsyncClient) -> None:
    """What a person deletes, the bot finds gone."""
    ts = (await slack.chat_postMessage(channel=STATUS, text="board"))["ts"]
    said = (await control.post(f"/sandbox/channels/{STATUS}/messages", json={"text": "hello"})).json()
    assert said["author"] == "somebody"
    gone = await control.delete(f"/sandbox/channels/{STATUS}/messages/{ts}")
    assert gone.json()["text"] == "board"
    assert (await control.delete(f"/sandbox/channels/{STATUS}/messages/{ts}")).status_code == 404
    left = (await control.get(f"/sandbox/channels/{STATUS}/messages")).json()["messages"]
    assert [message["text"] for message in left] == ["hello"]
    assert (await control.get("/sandbox/channels/C0NONE/messages")).json()["error"] == "channel_not_found"


async def test_a_reset_forgets_all_but_the_numbers(
    sandbox: Sandbox, sandbox_clock: HandClock, slack: AsyncWebClient, control: httpx.AsyncClient
) -> None:
    old = (await slack.chat_postMessage(channel=STATUS, text="1"))["ts"]
    await control.post("/sandbox/channels", json={"id": "C0NEW", "name": "new"})
    sandbox.faults.fail_next("chat.postMessage", Fault.accepted_late(5))
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await slack.chat_postMessage(channel=STATUS, text="late")
    await sandbox_clock.until_waited_on()
    sandbox.faults.fail_next("auth.test", Fault.answer_lost())
    answer = await control.post("/sandbox/reset")
    assert [channel["id"] for channel in answer.json()["channels"]] == [STATUS, ALERTS]
    sandbox_clock.move(5)
    await slack.auth_test()
    assert sandbox.workspace.messages(STATUS) == [], "what was to be accepted late is forgotten as well"
    assert [entry.method for entry in sandbox.log.entries] == ["auth.test"]
    sandbox_clock.wall_ms -= 10_000
    assert (await slack.chat_postMessage(channel=STATUS, text="2"))["ts"] > old


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("sandbox_settings", [WITH_TOKEN])
async def test_the_controls_open_with_the_token_alone(control: httpx.AsyncClient, path: str) -> None:
    assert (await control.get(path)).status_code == 401
    assert (await control.get(path, headers={"authorization": "Bearer let-me-1n"})).status_code == 401
    assert (await control.get(path, headers={"authorization": "Bearer let-me-in"})).status_code == 200


@pytest.mark.parametrize("host", ["sandbox.example", "192.0.2.1:80", "localhost.example", ""])
async def test_a_site_cannot_reach_in_under_a_name_of_its_own(control: httpx.AsyncClient, host: str) -> None:
    assert (await control.get("/sandbox/log", headers={"host": host})).status_code == 403


@pytest.mark.parametrize("host", ["localhost:80", "127.0.0.1", "[::1]:8901"])
async def test_names_of_this_machine_are_let_in(control: httpx.AsyncClient, host: str) -> None:
    assert (await control.get("/sandbox/log", headers={"host": host})).status_code == 200


@pytest.mark.parametrize("address", ["192.0.2.7", "unix", None])
async def test_another_machine_is_not_let_in(sandbox: Sandbox, address: str | None) -> None:
    transport = httpx.ASGITransport(sandbox.app, client=(address, 1) if address else None)  # type: ignore[arg-type]  # as over a Unix socket
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as stranger:
        assert (await stranger.get("/sandbox/log")).status_code == 403
        assert (await stranger.get("/")).status_code == 200


async def test_another_sites_page_changes_nothing(sandbox: Sandbox, control: httpx.AsyncClient) -> None:
    """B071: a foreign origin, and a form that a page can send without asking."""
    sandbox.say(STATUS, "stays")
    foreign = await control.post("/sandbox/reset", headers={"origin": "https://evil.example"})
    form = await control.post("/sandbox/reset", headers={"content-type": "text/plain"})
    assert (foreign.status_code, form.status_code) == (403, 415)
    assert (await control.get("/sandbox/reset")).status_code == 405
    assert len(sandbox.workspace.messages(STATUS)) == 1
    assert (await control.post("/sandbox/reset", headers={"origin": sandbox.url})).status_code == 200
