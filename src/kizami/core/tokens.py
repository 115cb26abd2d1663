"""Secrets out of the environment: long enough not to be guessed, and fit for a header."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kizami.core.errors import ConfigurationError

TOKEN_LENGTH_MIN: Final = 16


def read_token(environ: Mapping[str, str], variable: str) -> str | None:
    """Return a usable token, or None when the variable is not set or empty. Raises ConfigurationError."""
    token = environ.get(variable, "")
    if not token:
        return None
    if len(token) < TOKEN_LENGTH_MIN or not is_printable(token):
        raise ConfigurationError(
            f"{variable} needs at least {TOKEN_LENGTH_MIN} printable ASCII characters, without spaces.",
            remedy="Make one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    return token


def is_printable(token: str) -> bool:
    """Tell whether a token can be sent in a header: printable ASCII without spaces."""
    return all("!" <= character <= "~" for character in token)
