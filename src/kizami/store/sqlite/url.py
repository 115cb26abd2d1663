"""Reads a database URL: the path of a SQLite file, or a sentence that says what in it can't be used."""

from __future__ import annotations

import os
import re
from typing import Final
from urllib.parse import unquote_to_bytes

from kizami.core.errors import ConfigurationError
from kizami.store.sqlite.connection import MEMORY

_WHERE: Final = "KIZAMI_DATABASE_URL or Kizami(database_url=...)"
_LIKE: Final = "sqlite:///kizami.db (or sqlite:////absolute/path.db), or postgresql://user@host/database"
_OTHERS: Final = {"postgresql": "PostgreSQL", "postgres": "PostgreSQL", "mysql": "MySQL", "mariadb": "MariaDB"}
_URL: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<slashes>/*)(?P<rest>.*)", re.ASCII | re.DOTALL)
_DRIVE: Final = re.compile(r"[A-Za-z]:([\\/]|$)", re.ASCII)
_WRONG_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SHOWN_MAX: Final = 200
_SLASHES: Final = 3


def path_of(url: object) -> str:
    """Return the file of a `sqlite:///` URL, `:memory:` for the database that is gone with its process.

    A fourth slash begins an absolute path; %XX stands for a byte. Raises ConfigurationError.
    """
    if not isinstance(url, str):
        raise _refusal(f"The database URL is of type {type(url).__name__}, not text.")
    parts = _URL.fullmatch(url)
    if parts is None:
        raise _refusal(f"The database URL {_shown(url)!r} has no scheme.")
    scheme = parts["scheme"].lower()
    if scheme != "sqlite":
        raise _foreign(scheme, url)
    if len(parts["slashes"]) < _SLASHES:
        raise _two_slashes(url, parts["rest"].rpartition("@")[2].partition("?")[0])
    return _checked(url, parts["slashes"][_SLASHES:] + parts["rest"])


def _checked(url: str, rest: str) -> str:
    """Return the path, unless something in it would silently become a part of the file's name."""
    for mark, what in (("?", "options"), ("#", "a fragment")):
        before, found, after = rest.partition(mark)
        if found:
            name = re.split("[=&]", after)[0]
            remedy = f"Write {_of(before)} without it; if the file's name has a {mark}, write %{ord(mark):02X}."
            raise _wrong(url, f"has {what} ({_shown(name)}), of which Kizami knows none", remedy)
    if wrong := _WRONG_PERCENT.search(rest):
        raise _wrong(url, f"has a % without two hexadecimal digits at {rest[wrong.start() :][:3]!r}", "Write % as %25.")
    path = os.fsdecode(unquote_to_bytes(rest.encode("utf-8", "surrogateescape")))
    if not path.strip() or "\0" in path:
        raise _wrong(url, "names no file", f"Write {_LIKE}.")
    if path.endswith("/"):
        raise _wrong(url, "names a folder", f"Name a file in it: {_of(path)}kizami.db.")
    if path.startswith("file:"):
        raise _wrong(url, "holds a URI of SQLite's own", f"Write the path alone: {_of(path.removeprefix('file:'))}.")
    if path != MEMORY and path.startswith(MEMORY):
        raise _wrong(url, "is neither a file nor :memory:", "Write sqlite:///:memory: without anything behind it.")
    if _DRIVE.match(path) and os.name != "nt":
        raise _wrong(url, "is a Windows path, and this is not Windows", "Write a path of this machine.")
    return path


def _two_slashes(url: str, rest: str) -> ConfigurationError:
    if not rest:
        return _wrong(url, "names no file", f"Write {_LIKE}.")
    return _wrong(url, f"has too few slashes to name the file {_shown(rest)}", f"Write {_of(rest)}.")


def _foreign(scheme: str, url: str) -> ConfigurationError:
    dialect, _, driver = scheme.partition("+")
    if driver and (dialect == "sqlite" or _OTHERS.get(dialect) == "PostgreSQL"):
        reason = f"names the driver {driver}, but Kizami brings its own"
        return _wrong(url, reason, f"Write {dialect}:// instead of {scheme}://.")
    name = _OTHERS.get(dialect)
    if name is None:
        return _wrong(url, f"has the scheme {scheme}, which Kizami doesn't know", f"Set {_WHERE} to {_LIKE}.")
    reason = f"names a {name} database, which can not hold the state of Kizami"
    return _wrong(url, reason, f"Set {_WHERE} to {_LIKE}.")


def _of(path: str) -> str:
    return f"sqlite:///{_shown(path) or 'kizami.db'}"


def _wrong(url: str, reason: str, remedy: str) -> ConfigurationError:
    return ConfigurationError(f"The database URL {_shown(_without_secrets(url))!r} {reason}.", remedy=remedy)


def _refusal(message: str) -> ConfigurationError:
    return ConfigurationError(message, remedy=f"Set {_WHERE} to {_LIKE}.")


def _without_secrets(url: str) -> str:
    """Leave out user, password and options: error messages end up in logs."""
    scheme, colon, rest = url.partition(":")
    slashes = rest[: len(rest) - len(rest.lstrip("/"))]
    return scheme + colon + slashes + re.sub(r"^.*@", "***@", rest.lstrip("/"), flags=re.DOTALL).partition("?")[0]


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
