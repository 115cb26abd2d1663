"""The ground truth: every call that the sandbox decided, in the order in which it decided."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kizami.sandbox.callers import Effect

OK = "ok"


@dataclass(slots=True)
class Entry:
    """One decided call. `outcome` is `ok` or Slack's error, or what was done to the connection instead.

    `effect` says what it changed; None is a read or a refusal. `at` is epoch milliseconds. `answered` becomes true when
    the whole answer was handed to a connection that was still open. What is accepted `late` has an entry of its own,
    with the time of its acceptance; `call` is the number of the entry at which its call came. `span` is of a history:
    the first and last ts, in microseconds, between which its answer held every message of that moment.
    """

    seq: int
    at: int
    method: str
    channel: str
    outcome: str
    effect: Effect | None
    ts: str | None
    text: str | None
    blocks_digest: str | None
    metadata: Mapping[str, Any] | None
    token: str
    fault: str | None
    late: bool
    call: int | None = None
    span: tuple[int, int] | None = None
    answered: bool = False

    @property
    def delivery(self) -> Mapping[str, Any]:
        """What the metadata of the message carries, empty without any."""
        payload = (self.metadata or {}).get("event_payload")
        return payload if isinstance(payload, Mapping) else {}


class CallLog:
    """Append-only. With a file, each entry is one line of JSON, handed to the system before the call goes on.

    An entry that is answered adds a line `{"seq": …, "answered": true}`.
    """

    def __init__(self, kept: int, file: Path | None = None) -> None:
        self._entries: deque[Entry] = deque(maxlen=kept)
        self._seq = 0
        self._file = file
        self._awaited: list[asyncio.Future[None]] = []

    @property
    def entries(self) -> Sequence[Entry]:
        """All calls, oldest first."""
        return tuple(self._entries)

    @property
    def last_seq(self) -> int:
        """The number of the newest entry, 0 before the first."""
        return self._seq

    def posts(self, channel: str | None = None) -> list[Entry]:
        """Return the accepted posts, of one channel or of all."""
        return self._effects("post", channel)

    def edits(self, channel: str | None = None, ts: str | None = None) -> list[Entry]:
        """Return the accepted edits, of one message, one channel or of all."""
        return [entry for entry in self._effects("edit", channel) if ts is None or entry.ts == ts]

    def duplicates(self, key: str) -> dict[str, list[Entry]]:
        """Return the posts that share the value of `key` in their metadata, by value, where there are several."""
        found: dict[str, list[Entry]] = defaultdict(list)
        for entry in self.posts():
            if key in entry.delivery:
                found[str(entry.delivery[key])].append(entry)
        return {value: entries for value, entries in found.items() if len(entries) > 1}

    def calls(self, method: str | None = None, channel: str | None = None) -> list[Entry]:
        """Return every call, whatever came of it, of a method and a channel if they are named."""
        return [e for e in self._entries if method in {None, e.method} and channel in {None, e.channel}]

    async def until(self, holds: Callable[[CallLog], bool]) -> None:
        """Wait until `holds` is true of the log; it is asked now and after each change."""
        while not holds(self):
            change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._awaited.append(change)
            await change

    def append(self, **facts: Any) -> Entry:
        """Add an entry under the next number."""
        self._seq += 1
        entry = Entry(seq=self._seq, **facts)
        self._entries.append(entry)
        self._changed(asdict(entry))
        return entry

    def answered(self, entry: Entry) -> None:
        """Note that the answer went out."""
        entry.answered = True
        self._changed({"seq": entry.seq, "answered": True})

    def clear(self) -> None:
        """Forget all entries in memory; the numbers go on."""
        self._entries.clear()

    def _effects(self, effect: Effect, channel: str | None) -> list[Entry]:
        return [entry for entry in self.calls(channel=channel) if entry.effect == effect]

    def _changed(self, line: Mapping[str, Any]) -> None:
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        awaited, self._awaited = self._awaited, []
        for change in awaited:
            if not change.done():
                change.set_result(None)


def digest(blocks: Sequence[Mapping[str, Any]]) -> str | None:
    """Return a short hash of blocks that changes with any of their content, None without blocks."""
    if not blocks:
        return None
    return hashlib.sha256(json.dumps(blocks, sort_keys=True).encode()).hexdigest()[:16]
