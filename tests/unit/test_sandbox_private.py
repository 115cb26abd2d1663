"""A sandbox that others can reach answers only who has its secret."""

from __future__ import annotations

import math
from base64 import b64encode
from typing import Any

import httpx
import pytest

from kizami.core.errors import ConfigurationError
from kizami.sandbox.server import Sandbox
from kizami.sandbox.settings import BotSeed, Rates, SandboxSettings

SECRET = "s3cret-" + "x" * 16
CLOSED = SandboxSettings(control_token=SECRET, bots=(BotSeed(token=SECRET),))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.1", "example.org"])  # noqa: S104 - refused here
@pytest.mark.parametrize(
    "settings",
    [SandboxSettings(), SandboxSettings(control_token=SECRET), SandboxSettings(bots=(BotSeed(token=SECRET),))],
)
async def test_it_does_not_listen_where_others_reach_it_without_secrets(host: str, settings: SandboxSettings) -> None:
    with pytest.raises(ConfigurationError, match="where others can reach it") as caught:
        async with Sandbox(settings).serving(host):
            pass
    assert "KIZAMI_SANDBOX_TOKEN" in str(caught.value.remedy)


async def test_with_secrets_it_listens_everywhere_and_answers_who_has_them() -> None:
    async with Sandbox(CLOSED).serving("0.0.0.0") as url:  # noqa: S104 - with a secret
        here = url.replace("0.0.0.0", "127.0.0.1")  # noqa: S104 - the same port on loopback
        async with httpx.AsyncClient(base_url=here, trust_env=False) as asking:
            paths = ("/", "/calls", "/channels/C0STATUS", "/static/sandbox.css", "/sandbox/log", "/nowhere")
            assert {(await asking.get(path)).status_code for path in paths} == {401}
            assert (await asking.get("/")).headers["www-authenticate"].startswith("Basic ")
            bearer = {"authorization": f"Bearer {SECRET}"}
            basic = {"authorization": f"Basic {b64encode(f'me:{SECRET}'.encode()).decode()}"}
            for headers in (bearer, basic):
                assert [(await asking.get(path, headers=headers)).status_code for path in ("/", "/sandbox/log")] == [
                    200
                ] * 2
            asked = await asking.post("/api/auth.test", headers={"authorization": "Bearer xoxb-sandbox"})
            assert asked.json() == {"ok": False, "error": "invalid_auth"}
            assert (await asking.post("/api/auth.test", headers=bearer)).json()["ok"] is True


@pytest.mark.parametrize(
    "authorization",
    [SECRET, "Bearer", "Bearer wrong", "Basic", "Basic !", "Basic 4444", f"Basic {SECRET}", "Bearer \xff", "Digest x"],
)
async def test_a_wrong_secret_opens_nothing_and_breaks_nothing(authorization: str) -> None:
    transport = httpx.ASGITransport(Sandbox(CLOSED).app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as asking:
        headers = {b"authorization": authorization.encode("latin-1")}
        answers = [await asking.get(path, headers=headers) for path in ("/", "/sandbox/log")]
    assert [answer.status_code for answer in answers] == [401, 401]


@pytest.mark.parametrize("headers", [{"host": "["}, {"host": "[::1"}, {"origin": "http://[", "content-type": "x"}])
async def test_a_header_that_is_no_address_is_refused(headers: dict[str, str]) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(Sandbox().app), base_url="http://localhost") as asking:
        answer = await asking.post("/sandbox/reset", headers=headers)
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "wrong",
    [
        *({"time_scale": value} for value in (math.inf, math.nan, 0, -1, 1e300, "2", True)),
        *({"edit_window_s": value} for value in (math.nan, -1, math.inf)),
        *({"rates": Rates(posts_per_second=value)} for value in (math.nan, 0, math.inf)),
        *({"messages_kept": value} for value in (0, math.nan)),
        *({"control_token": value} for value in ("", "a b", "\xff", 5)),
    ],
)
def test_a_setting_out_of_its_bounds_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"SandboxSettings.{next(iter(wrong))}") as caught:
        SandboxSettings(**wrong)
    assert caught.value.remedy
