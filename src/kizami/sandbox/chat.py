"""The methods chat.*: what they check, in which order, and what they answer."""

from __future__ import annotations

from kizami.sandbox.arguments import Arguments
from kizami.sandbox.callers import Caller, Result
from kizami.sandbox.content import Draft
from kizami.sandbox.echo import shown_message
from kizami.sandbox.refusals import RefusedError
from kizami.sandbox.workspace import Channel, Content, Message

_MS_PER_SECOND = 1_000


def post_message(caller: Caller, arguments: Arguments) -> Result:
    """chat.postMessage: a public channel may be named instead of its id."""
    caller.require("chat:write")
    channel = _open_channel(caller, arguments.required("channel"))
    draft = caller.reader.read(arguments)
    text, warnings = caller.reader.cut(draft)
    content = Content(text, draft.blocks or (), draft.attachments or (), draft.metadata or None)
    thread_ts = arguments.text("thread_ts") or None
    if thread_ts is not None and thread_ts not in channel.messages:
        raise RefusedError("thread_not_found")
    sketch = Message(
        channel.id,
        "",
        caller.bot,
        content,
        caller.elapsed_ms,
        thread_ts=thread_ts,
        is_broadcast=arguments.flag("reply_broadcast"),
    )
    message = caller.workspace.post(channel, sketch, caller.wall_ms)
    answer = {"channel": channel.id, "ts": message.ts, "message": shown_message(message)}
    return Result(answer, warnings, "post", message)


def update(caller: Caller, arguments: Arguments) -> Result:
    """chat.update: a text without blocks removes the blocks; metadata left out stays, `{}` removes it."""
    caller.require("chat:write")
    message = _own_message(caller, arguments, "cant_update_message")
    if caller.workspace.channel(message.channel).is_archived:
        raise RefusedError("is_inactive")
    draft = caller.reader.read(arguments)
    caller.reader.check_editable(draft)
    _check_edit_window(caller, message)
    content = _replaced(message.content, draft)
    shows_edited = not content.blocks
    edited = caller.workspace.edit(message, content, caller.wall_ms, shows_edited=shows_edited)
    shown = shown_message(edited)
    answer = {"channel": edited.channel, "ts": edited.ts, "text": shown["text"], "message": shown}
    return Result(answer, draft.warnings, "edit", edited)


def delete(caller: Caller, arguments: Arguments) -> Result:
    """chat.delete: own messages only."""
    caller.require("chat:write")
    message = _own_message(caller, arguments, "cant_delete_message")
    caller.workspace.delete(message.channel, message.ts)
    return Result({"channel": message.channel, "ts": message.ts}, (), "delete", message)


def get_permalink(caller: Caller, arguments: Arguments) -> Result:
    """chat.getPermalink: the link leads to the sandbox's own page."""
    channel = caller.visible(arguments.required("channel"))
    message = caller.workspace.message(channel.id, arguments.required("message_ts"))
    link = f"{caller.address}/archives/{channel.id}/p{message.ts.replace('.', '')}"
    thread = f"?thread_ts={message.thread_ts}&cid={channel.id}" if message.is_reply else ""
    return Result({"channel": channel.id, "permalink": link + thread})


def _open_channel(caller: Caller, name: str) -> Channel:
    """Return the channel to post in, or raise what is in the way."""
    named = caller.workspace.named(name)
    channel = named if named is not None else caller.visible(name)
    if channel.is_archived:
        raise RefusedError("is_archived")
    if not caller.is_in(channel) and "chat:write.public" not in caller.bot.scopes:
        raise RefusedError("not_in_channel")
    return channel


def _own_message(caller: Caller, arguments: Arguments, error: str) -> Message:
    channel = caller.visible(arguments.required("channel"))
    message = caller.workspace.message(channel.id, arguments.required("ts"))
    if message.bot.user_id != caller.bot.user_id:
        raise RefusedError(error)
    return message


def _check_edit_window(caller: Caller, message: Message) -> None:
    window_s = caller.settings.edit_window_s
    if window_s is not None and caller.elapsed_ms - message.posted_ms >= window_s * _MS_PER_SECOND:
        raise RefusedError("edit_window_closed")


def _replaced(old: Content, draft: Draft) -> Content:
    blocks = draft.blocks
    if blocks is None:
        blocks = () if draft.text is not None else old.blocks
    return Content(
        draft.text or "",
        blocks,
        old.attachments if draft.attachments is None else draft.attachments,
        old.metadata if draft.metadata is None else draft.metadata or None,
    )
