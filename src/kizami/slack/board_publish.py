"""One publish of a board: the row is claimed, then the message is edited, or posted where there is none."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from kizami.engine.context import LeaseLost
from kizami.slack.error_codes import ErrorClass
from kizami.slack.errors import ApiError, SlackError, Unclear
from kizami.slack.history import Finding
from kizami.slack.policy import POSTING
from kizami.slack.posting import CLAIM_MS, Posted, post
from kizami.store.protocol import BoardEdit, BoardPost

if TYPE_CHECKING:
    from kizami.core.times import EpochMs
    from kizami.engine.context import JobContext
    from kizami.slack.client import Slack
    from kizami.slack.history import History, LookedUp
    from kizami.slack.message import Message
    from kizami.store.protocol import BoardClaim, Intent

log = logging.getLogger("kizami.slack.board")

UPDATE: Final = "chat.update"
_HOUR_MS: Final = 3_600_000
_REPLACED_AT_MOST_EVERY: Final = {
    "message_not_found": _HOUR_MS,
    # A new message doesn't cure these: its edits will be refused like those of the old one.
    "cant_update_message": 7 * 24 * _HOUR_MS,
    "edit_window_closed": 7 * 24 * _HOUR_MS,
}


class BoardOutcome(StrEnum):
    """What became of a publish."""

    POSTED = "posted"
    EDITED = "edited"
    ADOPTED = "adopted"
    """A message of an earlier, unanswered post was found and edited."""
    UNCHANGED = "unchanged"
    OLDER = "older"
    """Newer data was shown or tried already."""
    TAKEN = "taken"
    """Somebody else is publishing it."""
    WAITING = "waiting"
    """Rate limited, unreachable, or a look-up is incomplete: the next tick goes on."""
    IN_DOUBT = "in_doubt"
    """The answer was lost: an edit is simply made again, a post is looked for first."""
    REFUSED = "refused"
    """This message can't be edited, and it is too early for a new one."""
    PARKED = "parked"
    """Slack refuses this content, whatever its size."""
    FAILED = "failed"
    """A person has to act: token, scopes or code."""
    OFF = "off"
    """The channel can't be written to; tried again once an hour, or when the board is switched on."""


@dataclass(frozen=True, slots=True)
class BoardSettings:
    """The choices of `StatusBoard`; `skip_unchanged_ms` is for how long an unchanged board needs no edit."""

    name: str
    channel: str
    skip_unchanged_ms: int | None


@dataclass(frozen=True, slots=True)
class Showing:
    """What is to be shown: two renderings, the second for when the first is too large, and how old their data is."""

    renderings: tuple[Message, Message]
    stamp: str
    synced_at: EpochMs

    @property
    def content_hash(self) -> str:
        """Return the fingerprint of the full rendering, without the stamp."""
        return self.renderings[0].content_hash


async def publish_board(
    job: JobContext, slack: Slack, history: History, settings: BoardSettings, showing: Showing
) -> BoardOutcome:
    """Claim the board's row and bring its message up to date."""
    history.begin()
    await job.require_lease()
    database_id = await job.store.identity.database_id()
    now = await job.store.schedules.now()
    token = job.runtime.entropy.token()
    claim = await job.store.boards.claim(
        job.app, settings.name, settings.channel, token, CLAIM_MS, job.worker_id, job.fence
    )
    if claim is None:
        await job.require_lease()
        return BoardOutcome.TAKEN
    publish = _Publish(job, slack, history, settings, claim, showing, database_id, now)
    try:
        outcome = await publish.show()
    finally:
        await publish.close()
    if outcome is not BoardOutcome.ADOPTED:
        return outcome
    edited = await publish_board(job, slack, history, settings, showing)
    return outcome if edited is BoardOutcome.EDITED else edited


class _Publish:
    """A publish in progress. `close` gives the claim back when nothing else has ended it."""

    def __init__(
        self,
        job: JobContext,
        slack: Slack,
        history: History,
        settings: BoardSettings,
        claim: BoardClaim,
        showing: Showing,
        database_id: str,
        now: EpochMs,
    ) -> None:
        self._job = job
        self._slack = slack
        self._history = history
        self._settings = settings
        self._claim = claim
        self._board = claim.board
        self._showing = showing
        self._store = job.store.boards
        self._delivery = f"board/{job.app}/{settings.channel}/{settings.name}"
        self._key = f"{database_id}/{self._delivery}"
        self._note: str | None = None
        self._off = False
        self._now = now

    async def close(self) -> None:
        """Give the claim back; one that a mark has ended already is not there any more."""
        await self._store.hand_back(self._job.app, self._claim, self._note, off=self._off)

    async def show(self) -> BoardOutcome:
        """Edit the message, or post it where there is none."""
        board, showing = self._board, self._showing
        if self._is_off():
            return BoardOutcome.OFF
        if board.parked_hash == showing.content_hash:
            return BoardOutcome.PARKED
        if board.ts is None:
            return await self._settle_doubts() or await self._post()
        return BoardOutcome.UNCHANGED if self._needs_no_edit() else await self._edit()

    def _is_off(self) -> bool:
        """Tell whether to leave the channel alone; once an hour Slack is asked whether it still must be."""
        off_at = self._board.off_at
        return off_at is not None and 0 <= self._now - off_at < _HOUR_MS

    def _needs_no_edit(self) -> bool:
        board, within_ms = self._board, self._settings.skip_unchanged_ms
        if within_ms is None or board.synced_at is None or board.content_hash != self._showing.content_hash:
            return False
        return 0 <= self._showing.synced_at - board.synced_at < within_ms

    async def _settle_doubts(self) -> BoardOutcome | None:
        """Find out whether an earlier post was accepted; None when a post is to follow."""
        if not self._claim.unsettled:
            return None
        looked = await self._history.find(self._job, self._key, self._claim.unsettled)
        match looked.finding:
            case Finding.FOUND:
                return await self._adopt(looked)
            case Finding.INCOMPLETE:
                self._note = f"waits because the look-up is incomplete: {looked.reason}"
                return BoardOutcome.WAITING
            case Finding.UNREADABLE:
                why = f"the history can't be read ({looked.reason}); a duplicate is possible"
                self._note = f"posted again after a lost answer, because {why}"
                log.warning("%s is %s", self._delivery, self._note)
            case _:
                for intent in self._claim.unsettled:
                    await self._store.settle(self._job.app, self._claim, intent, "looked up: absent")
        return None

    async def _adopt(self, looked: LookedUp) -> BoardOutcome:
        """Keep the message of an earlier try; what it shows is as old as that try, so an edit follows."""
        assert looked.posted is not None  # noqa: S101 - what FOUND means
        if looked.copies > 1:
            self._note = f"{looked.copies} copies are in the channel"
            log.warning("%s: %s", self._delivery, self._note)
        shown_at = self._board.aimed_at or self._showing.synced_at
        return await self._keep(looked.posted, shown_at, "", BoardOutcome.ADOPTED)

    async def _keep(self, posted: Posted, shown_at: EpochMs, content_hash: str, outcome: BoardOutcome) -> BoardOutcome:
        kept = BoardPost(posted.channel, posted.ts, shown_at, content_hash, self._note)
        if await self._store.mark_posted(self._job.app, self._claim, kept, self._job.fence):
            return outcome
        said = f"possible duplicate: the acknowledgement of {posted.ts} touched no row"
        return await self._distrust(said, posted=True)

    async def _distrust(self, said: str, *, posted: bool) -> BoardOutcome:
        """Say that somebody else holds the board by now, so that its next edit isn't spared."""
        log.warning("%s: %s", self._delivery, said)
        await self._store.distrust(self._job.app, self._claim, said, posted=posted)
        return BoardOutcome.IN_DOUBT

    async def _post(self) -> BoardOutcome:
        refusal: SlackError | None = None
        try:
            await self._slack.introduce()
        except SlackError as error:
            return self._end_with(error, in_doubt=False)
        for rendering in self._showing.renderings:
            intent = await self._store.intend_post(
                self._job.app, self._claim, self._showing.synced_at, self._job.fence, self._slack.now()
            )
            if intent is None:
                return await self._keep_what_is_shown()
            try:
                posted = await self._post_once(rendering, intent)
            except SlackError as error:
                refusal = error
                if not isinstance(error, Unclear):
                    await self._store.settle(self._job.app, self._claim, intent, error.message)
                if _is_about_content(error):
                    continue
                return self._end_with(error)
            if posted.warnings:
                self._note = f"Slack warns: {', '.join(posted.warnings)}"
                log.warning("%s was posted, but %s", self._delivery, self._note)
            return await self._keep(posted, self._showing.synced_at, self._showing.content_hash, BoardOutcome.POSTED)
        return await self._park(refusal)

    async def _post_once(self, rendering: Message, intent: Intent) -> Posted:
        message = rendering.stamped(self._showing.stamp)
        try:
            await self._job.require_lease()
            return await post(self._slack, self._board.channel, message, self._key, intent.attempt, self._delivery)
        except LeaseLost:
            await self._store.settle(self._job.app, self._claim, intent, "not sent: the lease was lost")
            raise

    async def _keep_what_is_shown(self) -> BoardOutcome:
        await self._job.require_lease()
        log.info("%s keeps what it shows: newer data was shown or tried already", self._delivery)
        return BoardOutcome.OLDER

    async def _edit(self) -> BoardOutcome:
        refusal: SlackError | None = None
        for rendering in self._showing.renderings:
            if not await self._store.intend_edit(self._job.app, self._claim, self._showing.synced_at, self._job.fence):
                return await self._keep_what_is_shown()
            try:
                await self._edit_once(rendering)
            except SlackError as error:
                refusal = error
                if _is_about_content(error):
                    continue
                if isinstance(error, ApiError) and error.kind is ErrorClass.REPOST:
                    return await self._replace(error)
                return self._end_with(error)
            edit = BoardEdit(self._showing.synced_at, self._showing.content_hash)
            if await self._store.mark_edited(self._job.app, self._claim, edit, self._job.fence):
                return BoardOutcome.EDITED
            return await self._distrust("the acknowledgement of an edit touched no row", posted=False)
        return await self._park(refusal)

    async def _edit_once(self, rendering: Message) -> None:
        message = rendering.stamped(self._showing.stamp)
        place = {"channel": self._board.posted_channel, "ts": self._board.ts}
        await self._job.require_lease()
        await self._slack.announce("before_send", self._delivery)
        # Text and blocks, always: an edit with one of them removes the other.
        await self._slack.call(UPDATE, place | {"text": message.text, "blocks": list(message.blocks)}, POSTING)
        await self._slack.announce("answered", self._delivery)

    async def _replace(self, error: ApiError) -> BoardOutcome:
        """Post a new message for one that is gone or can't be edited, within its limit."""
        not_within_ms = _REPLACED_AT_MOST_EVERY.get(error.error, _HOUR_MS)
        note = f"replaced: {error.error}"
        if not await self._store.forget_message(self._job.app, self._claim, note, not_within_ms, self._job.fence):
            await self._job.require_lease()
            self._note = f"{error.error} again; too early for another message"
            log.warning("%s: %s", self._delivery, self._note)
            return BoardOutcome.REFUSED
        level = logging.WARNING if error.error == "message_not_found" else logging.ERROR
        log.log(level, "%s: its message can't be edited (%s); a new one is posted", self._delivery, error.error)
        return await self._post()

    async def _park(self, refusal: SlackError | None) -> BoardOutcome:
        note = f"parked until its content changes: {refusal}"
        log.error("%s is %s", self._delivery, note)
        await self._store.park(self._job.app, self._claim, self._showing.content_hash, note)
        return BoardOutcome.PARKED

    def _end_with(self, error: SlackError, *, in_doubt: bool = True) -> BoardOutcome:
        """Say what stopped this publish, to the log and on the board."""
        self._note = str(error)  # with the remedy: commands and pages show it
        match error:
            case Unclear() if in_doubt:
                log.warning("%s is in doubt: %s", self._delivery, error)
                return BoardOutcome.IN_DOUBT
            case ApiError(kind=ErrorClass.CHANNEL):
                self._off = True
                log.error("%s is off, and tried again in an hour: %s", self._delivery, error)
                return BoardOutcome.OFF
            case ApiError(kind=kind) if kind is not ErrorClass.RETRY:
                log.error("%s: %s", self._delivery, error)
                return BoardOutcome.FAILED
            case _:
                log.info("%s waits: %s", self._delivery, error)
                return BoardOutcome.WAITING


def _is_about_content(error: SlackError) -> bool:
    return isinstance(error, ApiError) and error.kind is ErrorClass.CONTENT
