"""Who waits for changes of what, in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from kizami.store.protocol import Topic


class Wakes:
    """Calls to make after changes, on the event loop."""

    def __init__(self) -> None:
        self._wakes: dict[object, tuple[Callable[[], None], tuple[Topic, ...]]] = {}

    def add(self, wake: Callable[[], None], topics: tuple[Topic, ...]) -> Callable[[], None]:
        """Call `wake` after changes of these topics; return what ends that."""
        token = object()
        self._wakes[token] = wake, topics

        def forget() -> None:
            self._wakes.pop(token, None)

        return forget

    def call(self, topics: tuple[Topic, ...]) -> None:
        """Wake those who wait for one of these topics."""
        for wake, wanted in tuple(self._wakes.values()):
            if any(topic in wanted for topic in topics):
                wake()

    def clear(self) -> None:
        """Wake nobody any more."""
        self._wakes.clear()
