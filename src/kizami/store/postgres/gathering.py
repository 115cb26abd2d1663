"""What waits together goes in one transaction: its commit is shared, and where it can be its statements.

Each call stays all or nothing for itself: where the transaction fails through one of them, each runs in one of its own.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar

from kizami.core.errors import StoreBusyError, StoreError
from kizami.store.postgres.session import Errand, StatementLostError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kizami.store.postgres.session import Session
    from kizami.store.transaction import Ahead, Alone, Foresight, Joint, Moment, Transaction, Write

T = TypeVar("T")
Item = TypeVar("Item")
Answer = TypeVar("Answer")
GATHER_MAX: Final = 500
"""How many items go in one transaction; a call with more goes alone, so that nobody waits for it."""


class _Call(Protocol):
    """What waits for its answer."""

    @property
    def answer(self) -> Future[Any]:
        """Return where the answer goes."""
        ...

    @property
    def size(self) -> int:
        """Return how much of a transaction it takes."""
        ...


Call = TypeVar("Call", bound=_Call)


class _Turns(ABC, Generic[Call]):
    """What waits for its turn. One transaction is on its way at a time; `lend` gives a thread with a session."""

    def __init__(self, lend: Callable[[Callable[[Session], None]], object]) -> None:
        self._lend = lend
        self._lock = threading.Lock()
        self._waiting: deque[Call] = deque()
        self._serving = False

    @abstractmethod
    def _answers(self, session: Session, batch: list[Call]) -> Sequence[object]:
        """Return the answer of each call of a batch, from one transaction."""

    def _put(self, call: Call) -> None:
        call.answer.set_running_or_notify_cancel()  # it runs, whoever still waits for it
        with self._lock:
            if not self._serving:
                self._lend(self._serve)
                self._serving = True
            self._waiting.append(call)

    def _serve(self, session: Session) -> None:
        while batch := self._take():
            self._run(session, batch)

    def _take(self) -> list[Call]:
        batch: list[Call] = []
        room = GATHER_MAX
        with self._lock:
            while self._waiting and (not batch or self._waiting[0].size <= room):
                batch.append(self._waiting.popleft())
                room -= batch[-1].size
            self._serving = bool(batch)
        return batch

    def _run(self, session: Session, batch: list[Call]) -> None:
        try:
            answers = self._answers(session, batch)
        except BaseException as error:  # noqa: BLE001 - whatever it is, those who wait must hear of it and the thread go on
            if len(batch) > 1 and _is_of_one_call(error):
                for call in batch:
                    self._run(session, [call])
            else:
                for call in batch:
                    call.answer.set_exception(error)
            return
        for call, answer in zip(batch, answers, strict=True):
            call.answer.set_result(answer)


class _Operation(NamedTuple):
    operation: Write[Any]
    foreseen: Sequence[Ahead]
    answer: Future[Any]
    size: int = 1


class Sharing(_Turns[_Operation]):
    """Operations of any kind, in the order in which they came."""

    def submit(self, operation: Write[T], foreseen: Sequence[Ahead] = ()) -> Future[T]:
        """Have an operation run with others. Raises StoreError when the database is closed."""
        call = _Operation(operation, foreseen, Future())
        self._put(call)
        return call.answer

    def _answers(self, session: Session, batch: list[_Operation]) -> Sequence[object]:
        def operation(transaction: Transaction, moment: Moment) -> list[object]:
            return [call.operation(transaction, moment) for call in batch]

        return session.run(operation, Errand.WRITE, batch[0].foreseen if len(batch) == 1 else ())


class _Items(NamedTuple, Generic[Item, Answer]):
    items: Sequence[Item]
    answer: Future[tuple[Answer, ...]]

    @property
    def size(self) -> int:
        return len(self.items)


class Gathering(_Turns[_Items[Item, Answer]], Generic[Item, Answer]):
    """Items for one operation, which takes those of several calls."""

    def __init__(
        self,
        lend: Callable[[Callable[[Session], None]], object],
        operation: Joint[Item, Answer],
        foresee: Foresight[Item],
        alone: Alone[Item, Answer],
    ) -> None:
        super().__init__(lend)
        self._operation = operation
        self._foresee = foresee
        self._alone = alone

    def submit(self, items: Sequence[Item]) -> Future[tuple[Answer, ...]]:
        """Have the items written with those of others. Raises StoreError when the database is closed."""
        call: _Items[Item, Answer] = _Items(items, Future())
        self._put(call)
        return call.answer

    def _answers(self, session: Session, batch: list[_Items[Item, Answer]]) -> Sequence[object]:
        items = [item for call in batch for item in call.items]
        answers = iter(self._written(session, items))
        return [tuple(next(answers) for _ in call.items) for call in batch]

    def _written(self, session: Session, items: list[Item]) -> Sequence[Answer]:
        if len(items) == 1 and (call := self._alone.call(items[0])) is not None:
            try:
                answer = self._alone.answer(items[0], session.run_alone(*call))
            except StatementLostError:
                return list(map(self._alone.answer_after_loss, self._together(session, items)))
            if answer is not None:
                return [answer]
        return self._together(session, items)

    def _together(self, session: Session, items: list[Item]) -> Sequence[Answer]:
        def operation(transaction: Transaction, moment: Moment) -> Sequence[Answer]:
            return self._operation(transaction, moment, items)

        return session.run(operation, Errand.WRITE, self._foresee(items))


def _is_of_one_call(error: BaseException) -> bool:
    """Tell whether an error may be due to one call alone: a refused value, or a lock that it waited for in vain."""
    return isinstance(error, StoreBusyError) or not isinstance(error, StoreError)
