"""Somebody else's database, read only: a query's rows, or a sentence that says why there are none."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from threading import Event
from typing import TYPE_CHECKING, Final

from sqlalchemy import text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from kizami.core.errors import ConfigurationError, InvalidInputError
from kizami.slack.source_database import engine_for, reason_of, require_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from kizami.runtime import Runtime

DATABASE_VARIABLE: Final = "KIZAMI_MIRROR_DATABASE_URL"
ROWS_MAX: Final = 10_000
LIMIT: Final = timedelta(seconds=30)
_READ_ONLY: Final = {
    "sqlite": "PRAGMA query_only = ON",
    "postgresql": "SET TRANSACTION READ ONLY",
    "mysql": "SET TRANSACTION READ ONLY",
    "mariadb": "SET TRANSACTION READ ONLY",
}
_TIME_LIMIT: Final = {
    "postgresql": "SET LOCAL statement_timeout = {ms}",
    "mysql": "SET SESSION max_execution_time = {ms}",
    "mariadb": "SET SESSION max_statement_time = {ms} / 1000",
}
"""How the server itself is told to end a query; SQLite is interrupted from here."""
_ENDED: Final = frozenset({"57014", "3024", "1969"})
"""What PostgreSQL, MySQL and MariaDB call a query that they ended for its length."""
_FAILURES: Final = (SQLAlchemyError, ValueError, TypeError, OverflowError, OSError)
"""What comes out of SQLAlchemy and, unwrapped, out of drivers that a value or an address doesn't please."""


class QueryError(InvalidInputError):
    """The database refused a query, or its answer can't be shown."""

    code = "query_failed"


class QueryTooLongError(QueryError):
    """The query was ended because it took too long."""

    code = "query_too_long"


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of a query under its columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


class Query:
    """One query on one database, which is ended after `limit` (SQLite, PostgreSQL, MySQL and MariaDB).

    Raises ConfigurationError for a URL or driver that can't be used.
    """

    def __init__(self, url: URL, query: str, limit: timedelta = LIMIT) -> None:
        require_file(url)
        self.limit = limit
        self._engine = engine_for(url)
        self._shown_url = url.render_as_string(hide_password=True)
        # Every colon is text here, never a parameter of the query.
        self._statement = text(query.replace(":", r"\:"))

    def fetch(self, runtime: Runtime) -> Answer:
        """Run the query and return its rows; nothing it might write is kept. Blocks. Raises QueryError."""
        ended = Event()
        try:
            with self._reading() as connection, self._limited(connection, runtime, ended):
                result = connection.execute(self._statement)
                if not result.returns_rows:
                    raise QueryError("The query returns no rows to show.", remedy="Give a SELECT.", path="--query")
                columns = tuple(result.keys())
                rows = tuple(tuple(row) for row in result.fetchmany(ROWS_MAX + 1))
        except _FAILURES as error:
            if ended.is_set() or _code_of(error) in _ENDED:
                raise QueryTooLongError(
                    f"The query on {self._shown_url} was ended: it took longer than {self.limit.total_seconds():g} s.",
                    remedy="Make it faster, or give it more time with --query-limit.",
                    path="--query",
                ) from error
            raise QueryError(
                f"The query on {self._shown_url} failed: {reason_of(error)}.",
                remedy="Correct it where that names a mistake: it must be one SELECT that the database takes.",
                path="--query",
            ) from error
        if len(rows) > ROWS_MAX:
            raise QueryError(f"The query returns more than {ROWS_MAX:,} rows.", remedy="Add a LIMIT.", path="--query")
        return Answer(columns, rows)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._connected() as connection:
            if (statement := _READ_ONLY.get(connection.dialect.name)) is not None:
                connection.exec_driver_sql(statement)
            yield connection  # its end rolls back

    @contextmanager
    def _limited(self, connection: Connection, runtime: Runtime, ended: Event) -> Iterator[None]:
        """End what runs on a connection inside this block after the limit; `ended` is set when that was done here."""
        if (statement := _TIME_LIMIT.get(connection.dialect.name)) is not None:
            connection.exec_driver_sql(statement.format(ms=round(self.limit.total_seconds() * 1000)))
        interrupt = getattr(connection.connection.driver_connection, "interrupt", None)
        if interrupt is None:
            yield
            return

        def end() -> None:
            ended.set()
            interrupt()

        watch = runtime.beat("kizami-query-limit", self.limit.total_seconds(), end)
        try:
            yield
        finally:
            watch.stop()

    def _connected(self) -> Connection:
        try:
            return self._engine.connect()
        except _FAILURES as error:
            raise QueryError(
                f"The database {self._shown_url} can't be reached: {reason_of(error)}.",
                remedy=f"Check that it runs, and host, name, user and password in {DATABASE_VARIABLE} or --database.",
                path="--database",
            ) from error


def _code_of(error: Exception) -> str:
    """Return the database's own code of an error, "" when it has none."""
    said = getattr(error, "orig", None)
    code = getattr(said, "sqlstate", None) or next(iter(getattr(said, "args", ())), "")
    return str(code)


def read_url(given: str | None, from_environment: str | None) -> URL:
    """Return the database to mirror. Raises InvalidInputError, and ConfigurationError when there is none."""
    url = given or from_environment
    if not url:
        remedy = f"Set {DATABASE_VARIABLE} to its SQLAlchemy URL, or give --database when it needs no password."
        raise ConfigurationError("There is no database to mirror.", remedy=remedy)
    source = "--database" if given else DATABASE_VARIABLE
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        remedy = "Write it as postgresql+psycopg://host/name or sqlite:///file.db."
        kind = InvalidInputError if given else ConfigurationError
        raise kind(f"{source} is not a SQLAlchemy URL.", remedy=remedy) from error
    if given and (parsed.password is not None or "password" in parsed.query):
        raise InvalidInputError(
            "--database holds a password, which every user of this machine could read there.",
            remedy=f"Put the URL into the environment variable {DATABASE_VARIABLE} instead, and change that password.",
            path="--database",
        )
    return parsed
