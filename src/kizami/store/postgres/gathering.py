"""Calls of one kind that wait together go in one transaction: their commit is shared, and so are their statements.

Each stays all or nothing for itself: where the transaction fails through one of them, each runs in one of its own.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from kizami.core.errors import StoreBusyError, StoreError
from kizami.store.postgres.session import Errand, StatementLostError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kizami.store.postgres.session import Session
    from kizami.store.transaction import Alone, Foresight, Joint, Moment, Transaction

Item = TypeVar("Item")
Answer = TypeVar("Answer")
GATHER_MAX: Final = 500
"""How many items go in one transaction; a call with more goes alone, so that nobody waits for it."""


class _Call(NamedTuple, Generic[Item, Answer]):
    items: Sequence[Item]
    answers: Future[tuple[Answer, ...]]


class Gathering(Generic[Item, Answer]):
    """What waits for its turn. One transaction is on its way at a time; `lend` gives a thread with a session."""

    def __init__(
        self,
        lend: Callable[[Callable[[Session], None]], object],
        operation: Joint[Item, Answer],
        foresee: Foresight[Item],
        alone: Alone[Item, Answer],
    ) -> None:
        self._lend = lend
        self._operation = operation
        self._foresee = foresee
        self._alone = alone
        self._lock = threading.Lock()
        self._waiting: deque[_Call[Item, Answer]] = deque()
        self._serving = False

    def submit(self, items: Sequence[Item]) -> Future[tuple[Answer, ...]]:
        """Have the items written with those of others. Raises StoreError when the database is closed."""
        call: _Call[Item, Answer] = _Call(items, Future())
        call.answers.set_running_or_notify_cancel()  # it runs, whoever still waits for it
        with self._lock:
            if not self._serving:
                self._lend(self._serve)
                self._serving = True
            self._waiting.append(call)
        return call.answers

    def _serve(self, session: Session) -> None:
        while batch := self._take():
            self._run(session, batch)

    def _take(self) -> list[_Call[Item, Answer]]:
        batch: list[_Call[Item, Answer]] = []
        room = GATHER_MAX
        with self._lock:
            while self._waiting and (not batch or len(self._waiting[0].items) <= room):
                batch.append(self._waiting.popleft())
                room -= len(batch[-1].items)
            self._serving = bool(batch)
        return batch

    def _run(self, session: Session, batch: list[_Call[Item, Answer]]) -> None:
        items = [item for call in batch for item in call.items]
        try:
            answers = iter(self._written(session, items))
        except BaseException as error:  # noqa: BLE001 - whatever it is, those who wait must hear of it and the thread go on
            if len(batch) > 1 and _is_of_one_call(error):
                for call in batch:
                    self._run(session, [call])
            else:
                for call in batch:
                    call.answers.set_exception(error)
            return
        for call in batch:
            call.answers.set_result(tuple(next(answers) for _ in call.items))

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
