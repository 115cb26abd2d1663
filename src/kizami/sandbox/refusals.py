"""How a method says no."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kizami.core.errors import KizamiError


class RefusedError(KizamiError):
    """Slack's `{"ok": false, "error": …}`; `error` is Slack's code, `details` point to the places.

    The extra facts are added to the answer as they are: needed and provided of missing_scope, for example.
    """

    code = "refused_by_slack"

    def __init__(self, error: str, details: Sequence[str] = (), **facts: object) -> None:
        super().__init__(f"Slack refuses the call: {error}")
        self.facts = facts
        self.error = error
        self.details = tuple(details)

    def answer(self) -> dict[str, Any]:
        """Return the body that Slack would send."""
        body: dict[str, Any] = {"ok": False, "error": self.error, **self.facts}
        if self.details:
            body["errors"] = list(self.details)
            body["response_metadata"] = {"messages": [f"[ERROR] {detail}" for detail in self.details]}
        return body


def missing(field: str) -> RefusedError:
    """Return the refusal of a call without a required argument."""
    return RefusedError("invalid_arguments", [f"missing required field: {field}"])
