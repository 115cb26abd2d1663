"""Pages from templates: everything escaped, every link below the prefix, every time with its zone."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

from kizami.core.times import MS_PER_SECOND, format_local, to_datetime
from kizami.core.zone import load_zone
from kizami.web.gate import identity_of, path_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Scope

    from kizami.web.problems import Problem

_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
_SHOWN_CHARACTERS_MAX: Final = 20_000


class Look:
    """The pages of one app."""

    def __init__(self, app_name: str) -> None:
        self._environment = Environment(
            loader=PackageLoader("kizami.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals["app_name"] = app_name
        self._environment.filters |= {
            "local": local_text,
            "iso": lambda at: to_datetime(at).isoformat(),
            "length": length_text,
            "relative": relative_text,
            "pretty": pretty_json,
            "segment": lambda text: quote(str(text), safe=""),
        }

    def page(
        self,
        scope: Scope,
        template: str,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        **values: Any,
    ) -> HTMLResponse:
        """Return a page as an answer."""
        identity = identity_of(scope)
        text = self._environment.get_template(template).render(
            base=scope.get("root_path", ""),
            path=path_of(scope),
            identity=identity,
            csrf_token=identity.csrf_token if identity else None,
            **values,
        )
        return HTMLResponse(text, status_code=status, headers=headers)

    def login(
        self,
        scope: Scope,
        *,
        back: str = "/",
        complaint: str | None = None,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> HTMLResponse:
        """Return the login page, which leads on to `back`."""
        return self.page(scope, "login.html", back=back, complaint=complaint, status=status, headers=headers)

    def problem(self, scope: Scope, problem: Problem, headers: Mapping[str, str] | None = None) -> HTMLResponse:
        """Return a page that says what went wrong and what to do."""
        return self.page(scope, "problem.html", problem=problem, status=problem.status, headers=headers)


def local_text(at: int, zone: str = "UTC") -> str:
    """Return an instant to the second, with its zone and the offset in force."""
    return format_local(at - at % MS_PER_SECOND, load_zone(zone))


def length_text(milliseconds: int) -> str:
    """Return a length of time in its two largest units, as `2 h 5 min`; below a second in milliseconds."""
    if milliseconds < _UNITS[-1][0]:
        return f"{milliseconds} ms"
    parts: list[tuple[int, str]] = []
    rest = milliseconds
    for size, unit in _UNITS:
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append((count, unit))
    return " ".join(f"{count} {unit}" for count, unit in parts[:2] if count)


def relative_text(at: int, now: int) -> str:
    """Return how far an instant is from now, in whole seconds: `in 5 s`, `3 min ago`, `now`."""
    seconds = round(timedelta(milliseconds=at - now) / timedelta(seconds=1))
    if seconds == 0:
        return "now"
    shown = length_text(abs(seconds) * 1000)
    return f"in {shown}" if seconds > 0 else f"{shown} ago"


def pretty_json(stored: str) -> str:
    """Return stored JSON set for reading, every digit kept; text that isn't JSON, or is very long, nearly as it is."""
    try:
        shown = json.dumps(json.loads(stored), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        shown = stored
    if len(shown) <= _SHOWN_CHARACTERS_MAX:
        return shown
    return f"{shown[:_SHOWN_CHARACTERS_MAX]}\n(cut after {_SHOWN_CHARACTERS_MAX} of {len(shown)} characters)"
