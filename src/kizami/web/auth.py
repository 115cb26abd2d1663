"""Who is asking: tokens from the environment or from functions, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kizami.core.errors import ConfigurationError
from kizami.core.tokens import read_token
from kizami.web.token_source import Asking, Constant, TokenSource

OPERATOR_VARIABLE: Final = "KIZAMI_TOKEN"
VIEWER_VARIABLE: Final = "KIZAMI_VIEWER_TOKEN"


class Role(StrEnum):
    """What a token's bearer may do: look, or look and act."""

    VIEWER = "viewer"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a request comes from; `csrf_token` is set when a cookie said so, and must come back with each write."""

    role: Role
    csrf_token: str | None = None

    @property
    def may_act(self) -> bool:
        """Tell whether this identity may change anything."""
        return self.role is Role.OPERATOR


@dataclass(frozen=True, slots=True)
class Auth:
    """Where the tokens come from: functions, asked anew for every request, so that a rotated token counts at once.

    They may be sync or async and run in a thread, for 5 seconds at most; nothing they answer is kept.

    Raises ConfigurationError for a token written into code, and when no role has a source.
    """

    operator: TokenSource | None = None
    viewer: TokenSource | None = None
    _asking: Asking = field(default_factory=Asking, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for role, source in self._sources():
            if source is not None and not callable(source):
                raise ConfigurationError(
                    f"Auth: the {role} token is given as a value.",
                    remedy=f"Give a function that returns it, or Auth.from_environment() with {OPERATOR_VARIABLE}.",
                )
        if self.operator is None and self.viewer is None:
            raise ConfigurationError("Auth: no role has a token.", remedy="Give operator, viewer or both.")

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Auth | None:
        """Return what KIZAMI_TOKEN (operator) and KIZAMI_VIEWER_TOKEN say; None when neither is set.

        Raises ConfigurationError for a token that is too short or can't be sent in a header, and for two equal ones.
        """
        operator, viewer = read_token(environ, OPERATOR_VARIABLE), read_token(environ, VIEWER_VARIABLE)
        if operator is None and viewer is None:
            return None
        if operator == viewer:
            raise ConfigurationError(
                f"{OPERATOR_VARIABLE} and {VIEWER_VARIABLE} are equal.", remedy="Give each role a token of its own."
            )
        return cls(operator=_constant(operator), viewer=_constant(viewer))

    async def role_of(self, token: str) -> Role | None:
        """Return the role of a token's bearer, or None. Takes the same time whichever role it is, or none.

        Raises TimeoutError when a source takes too long, and whatever it raises.
        """
        found: Role | None = None
        for role, source in self._sources():
            if source is not None and _equal(await self._asking.ask(source), token):
                found = role
        return found

    def _sources(self) -> tuple[tuple[Role, TokenSource | None], ...]:
        return ((Role.VIEWER, self.viewer), (Role.OPERATOR, self.operator))


def csrf_token_for(token: str) -> str:
    """Return what a page puts into its forms: derived from the cookie's token, of no use without it."""
    return hmac.new(token.encode(), b"kizami csrf", hashlib.sha256).hexdigest()


def same_secret(one: str, other: str) -> bool:
    """Compare two secrets in a time that tells nothing of where they differ."""
    return hmac.compare_digest(_digest(one), _digest(other))


def _equal(expected: str, given: str) -> bool:
    """Compare with a source's token; an empty token is nobody's."""
    return same_secret(expected, given) and bool(expected)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _constant(token: str | None) -> TokenSource | None:
    return None if token is None else Constant(token)
