"""What a room sees of a database: transactions with named statements, and the database's time in each.

Rooms are written once against this; each store brings the text of the statements in its own dialect.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from kizami.core.times import EpochMs
    from kizami.store.protocol import Topic
    from kizami.store.statements import Statement

T = TypeVar("T")
Item = TypeVar("Item")
Given_contra = TypeVar("Given_contra", contravariant=True)
Answered = TypeVar("Answered")


@dataclass(frozen=True, slots=True)
class Moment:
    """The store's time in a transaction: wall clock for planned times, boot clock for silences and claims.

    Where the database's own clock measures both, they are the same, and there is only one boot.
    """

    now: int
    boot: int
    boot_id: str


class Row(Protocol):
    """A row, by column name or by place."""

    def __getitem__(self, column: str | int, /) -> Any:
        """Return a column's value."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """Go through the values in order."""
        ...

    def keys(self) -> Any:
        """Return the names of the columns."""
        ...


class Answer(Protocol):
    """What a statement gave back."""

    @property
    def rowcount(self) -> int:
        """Return how many rows were written."""
        ...

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        ...

    def fetchall(self) -> list[Any]:
        """Return the remaining rows."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """Go through the rows."""
        ...


class Transaction(Protocol):
    """A transaction in progress."""

    def execute(self, statement: Statement, facts: Mapping[str, Any], /, **pieces: str) -> Answer:
        """Run a named statement, which may always name :now (and :boot, :boot_id on SQLite).

        `pieces`, constants of the room, fill what stands in braces. Raises InvalidInputError for a value that not
        every store keeps, and StoreError.
        """
        ...

    def tuples(self, statement: Statement, facts: Mapping[str, Any], /) -> Iterable[tuple[Any, ...]]:
        """Run a named statement with many rows, which are read by place only."""
        ...

    def execute_late(self, statement: Statement, rows: Sequence[tuple[Any, ...]], /) -> None:
        """Run a statement as `execute_many` does, before the next one or the commit at the latest."""
        ...

    def execute_many(self, statement: Statement, rows: Sequence[tuple[Any, ...]], /) -> int:
        """Run a named statement for each of the rows, whose values it numbers; return how many rows were written."""
        ...


Write = Callable[[Transaction, Moment], T]
Read = Callable[[Transaction, Moment], T]
Joint = Callable[[Transaction, Moment, Sequence[Item]], Sequence[Answered]]
"""An operation over items of several callers, with an answer for each."""

Ahead = tuple["Statement", Mapping[str, Any]]
"""A statement with its facts, known before the transaction begins."""

Foresight = Callable[[Sequence[Item]], Sequence[Ahead]]
"""Which statements an operation over such items begins with: where the way is long, they are sent together."""


class Alone(Protocol[Given_contra, Answered]):
    """How one item is written by one statement, which is a transaction by itself."""

    def call(self, item: Given_contra, /) -> tuple[Statement, Mapping[str, Any]] | None:
        """Return the statement; None when the item needs more than that."""
        ...

    def answer(self, item: Given_contra, rows: list[Any], /) -> Answered | None:
        """Return the answer by what the statement returned; None when it did nothing."""
        ...

    def answer_after_loss(self, answer: Answered, /) -> Answered:
        """Return the operation's answer when the statement was sent before and nobody knows what became of it."""
        ...


class Database(Protocol):
    """What rooms need of a database."""

    async def write(self, operation: Write[T]) -> T:
        """Run an operation in a committed transaction. Raises StoreError; what the operation raises is raised here."""
        ...

    async def share(self, operation: Write[T], foreseen: Sequence[Ahead] = ()) -> T:
        """Run an operation as `write` does, in one transaction with those of its kind that wait at the same time.

        They run in the order in which they came. It is for short ones that come often and belong to one worker. One
        that runs alone may begin with the `foreseen` statements, sent together where the way is long.
        """
        ...

    def gathered(
        self, operation: Joint[Item, Answered], foresee: Foresight[Item], alone: Alone[Item, Answered]
    ) -> Callable[[Sequence[Item]], Awaitable[tuple[Answered, ...]]]:
        """Return what writes items, those of concurrent callers in one transaction, all or none of each caller's.

        `foresee` and `alone` are for databases to which the way is long.
        """
        ...

    async def read(self, operation: Read[T]) -> T:
        """Run an operation that only reads, on one snapshot, for the engine: no look of people's is ever before it.

        Its cost must not grow with what the table holds.
        """
        ...

    async def look(self, operation: Read[T]) -> T:
        """Run an operation that only reads, on one snapshot, for people: a page, a list, a command.

        Looks wait for each other, never for the engine nor it for them. One that takes long is ended, and one too many
        is refused: raises StoreSlowError.
        """
        ...

    def write_blocking(self, operation: Write[T]) -> T:
        """Run a write from a thread that isn't the event loop."""
        ...

    async def join(self, connection: object, operation: Write[T]) -> T:
        """Run an operation in the transaction that a caller's own connection is in, and leave that open.

        The store needn't be open. What fails is taken back alone. Workers see it with the caller's commit. Raises
        OtherDatabaseError, WrongStateError for a connection without a transaction, StoreError.
        """
        ...

    def join_blocking(self, connection: object, operation: Write[T]) -> T:
        """Run as `join` does, from any thread, on a connection that isn't one of asyncio."""
        ...

    async def now(self) -> EpochMs:
        """Return the store's wall clock."""
        ...

    def announce(self, *topics: Topic) -> None:
        """Tell those who wait that there is something to look at."""
        ...
