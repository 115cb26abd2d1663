"""A table of the user's own as a queue: a row without a marker is owed, and the marker is what Slack answered."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from kizami.core.errors import ConfigurationError
from kizami.core.times import to_ms
from kizami.engine.context import current_job
from kizami.slack.dates import days_of, job_date, job_zone
from kizami.slack.delivery_round import DeliveryReport, DeliveryRound, RoundSettings
from kizami.slack.history import History
from kizami.slack.message import Message, message
from kizami.slack.posting import require_channel
from kizami.slack.text import escape
from kizami.slack.user_table_names import Days, TableNames, UserTableError, id_columns, split_table
from kizami.slack.user_table_queue import TableMemory, TableQueue

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from kizami.slack.client import Slack
    from kizami.slack.user_table_rows import OwedRow, UserRows

log = logging.getLogger("kizami.slack.deliveries")

Render = Callable[[Mapping[str, Any]], str | Message]


class UserTable:
    """Rows of a user's table, each posted once to a channel and marked with the ts of its message.

    `database` is a SQLAlchemy URL or a sync Engine; `table` may be `schema.table`; `id` is its key, of one column or
    several. `marker` is a text column that is NULL for what is owed. `due` names a column of dates; without it every
    unmarked row is due. `text` makes the message of a row: text is shown as it is, unless `markup` says that it is
    mrkdwn, and a `Message` is sent as it is; without it `columns` are shown. `where` is SQL that narrows the queue.
    `claim_token` (text) and `claim_expires` (integer, epoch ms) let workers share the table that share nothing else;
    `set_aside` (text) gets the reason when a row leaves the queue. `name` keeps the intents of this table apart from
    those of others; the table's and the marker's names by default.
    Raises DefinitionError and ConfigurationError; `check` looks at the table itself.
    """

    def __init__(
        self,
        slack: Slack,
        database: str | Engine,
        *,
        table: str,
        marker: str,
        channel: str,
        id: str | Sequence[str] = "id",  # noqa: A002 - the column's own name
        due: str | None = None,
        text: Render | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        markup: bool = False,
        claim_token: str | None = None,
        claim_expires: str | None = None,
        set_aside: str | None = None,
        name: str | None = None,
        max_age: timedelta = timedelta(days=7),
        batch: int = 50,
        history_lag: timedelta = timedelta(seconds=5),
        time_zone: str | None = None,
    ) -> None:
        schema, bare = split_table(table)
        self.names = TableNames(
            schema,
            bare,
            id_columns(id),
            marker,
            due,
            claim_token,
            claim_expires,
            set_aside,
            None if columns is None else tuple(columns),
            where,
        )
        self.channel = require_channel(f"Table {table}:", channel)
        self.name = name or f"{table}.{marker}"
        self._slack = slack
        self._text = text
        self._markup = markup
        self._time_zone = time_zone
        self._lag_ms = to_ms(history_lag, name="history_lag", least_ms=0)
        self._settings = RoundSettings(self.channel, days_of(max_age), max(1, batch), lookup=True)
        self._rows = _rows(database, self.names)
        self._histories: dict[str, History] = {}
        self._memories: dict[str, TableMemory] = {}

    async def check(self) -> None:
        """Look at the table; give it to `app.at_start`. Raises DefinitionError naming what is wrong and the remedy.

        A database that is out of reach now is logged and looked at by the first deliver: it must not keep the app's
        other schedules from running.
        """
        try:
            await self._rows.look()
        except UserTableError as error:
            log.warning("not looked at yet: %s", error)

    async def deliver(self) -> DeliveryReport:
        """Post what is owed, by due date then id; asks the lease before each post and marks after each.

        Never raises for what Slack answers. Raises UserTableError when the table can't be used (what is owed stays
        owed), and DefinitionError for a table that can't be a queue.
        """
        job = current_job()
        await self._rows.look()
        zone = await job_zone(job, self._time_zone)
        until = await job_date(job, zone)
        history = self._histories.setdefault(job.app, History(self._slack, self.channel, lag_ms=self._lag_ms))
        memory = self._memories.setdefault(job.app, TableMemory())
        database_id = await job.store.identity.database_id()
        days = Days(until - timedelta(days=self._settings.max_age_days), until, zone)
        queue = TableQueue(job, self._rows, f"{self.channel}:{self.name}", days, self._render, memory, database_id)
        await job.require_lease()
        await queue.catch_up()
        report = await DeliveryRound(job, self._slack, history, self._settings, until, queue).run()
        report.adopted += queue.counts.adopted
        report.refused += queue.counts.refused
        return report

    def _render(self, row: OwedRow) -> Message:
        if self._text is None:
            shown = self.names.columns or tuple(row.values)
            return message(escape("\n".join(f"{name}: {row.values[name]}" for name in shown)))
        made = self._text(row.values)
        if isinstance(made, Message):
            return made
        if isinstance(made, str):
            return message(made if self._markup else escape(made))
        raise TypeError(f"text= returned {type(made).__name__}, neither text nor a Message")


def _rows(database: object, names: TableNames) -> UserRows:
    """Return the rows behind a URL or an engine. Raises ConfigurationError and DefinitionError."""
    try:
        from kizami.slack.source_database import engine_of  # noqa: PLC0415 - only users of tables pay for SQLAlchemy
        from kizami.slack.user_table_rows import UserRows  # noqa: PLC0415 - as above
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            "A table needs SQLAlchemy, which isn't installed.", remedy="Install the extra: kizami[sql]."
        ) from error
    return UserRows(engine_of(f"Table {names}", database), names)
