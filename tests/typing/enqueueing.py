"""What a type checker has to know of an app's performers; read by test_typing.py, never run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import assert_type

from kizami import JobContext, Kizami, Performer
from kizami.app.performer import JobId

app = Kizami()


@dataclass
class Inbox:
    folder: str


@app.performer
async def poll(payload: Inbox) -> int:
    return len(payload.folder)


@app.performer(timeout=timedelta(minutes=2), max_attempts=5)
async def poll_slowly(payload: Inbox, ctx: JobContext) -> int:
    ctx.heartbeat(0.5)
    return len(payload.folder)


@app.performer
def count(payload: list[int], ctx: JobContext) -> str:
    return f"{ctx.attempt}: {sum(payload)}"


@app.performer
async def sweep(ctx: JobContext) -> None:
    ctx.heartbeat()


class Mail:
    def perform(self, payload: Inbox) -> None: ...


mail = app.performer(binding="MAIL")(Mail)  # type checkers take no notice of a class's decorator


assert_type(poll, Performer[Inbox, int])
assert_type(poll_slowly, Performer[Inbox, int])
assert_type(count, Performer[list[int], str])
assert_type(sweep, Performer[None, None])


async def right() -> None:
    assert_type(await poll.enqueue(Inbox("in"), delay=timedelta(hours=1)), JobId)
    await poll_slowly.enqueue(Inbox("in"), priority=3)
    await app.enqueue_many([count.job([1, 2]), sweep.job()])
    await mail.enqueue(Inbox("in"))


async def wrong() -> None:
    await poll.enqueue("in")  # type: ignore[arg-type]  # a text is no Inbox
    await poll_slowly.enqueue(Inbox)  # type: ignore[arg-type]  # the class is no Inbox
    await count.enqueue(["a"])  # type: ignore[list-item]  # its list has numbers
    await sweep.enqueue(1)  # type: ignore[arg-type]  # it takes no payload
    await poll.enqueue(Inbox("in"), delay=3)  # type: ignore[arg-type]  # a delay is a timedelta
    await poll.enqueue(Inbox("in"), prioritty=3)  # type: ignore[call-arg]  # no such option
