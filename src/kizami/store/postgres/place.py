"""Where a PostgreSQL is: a URL in libpq's form, with our own defaults, told to people without its password."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from kizami.core.errors import ConfigurationError

SCHEMES: Final = ("postgresql", "postgres")
_DEFAULTS: Final[dict[str, Any]] = {
    "application_name": "kizami",
    "connect_timeout": "10",
    # A machine that vanished says nothing: without these, its end would be noticed after hours.
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    # Of several hosts, the one that can be written: after a failover that is another one.
    "target_session_attrs": "read-write",
}
_REFUSED: Final = {
    "client_encoding": "Kizami speaks UTF-8.",
    "replication": "Kizami needs an ordinary connection.",
}
_EXAMPLE: Final = "Set KIZAMI_DATABASE_URL to postgresql://user@host/database."


@dataclass(frozen=True, slots=True)
class Place:
    """A server, or several of which one can be written, and a database on it."""

    conninfo: str
    shown: str
    """Where it is, for messages: never with a password."""

    def __repr__(self) -> str:
        return f"Place({self.shown!r})"


def place_of(url: str) -> Place:
    """Return the place that a URL names. Raises ConfigurationError, which doesn't show the URL."""
    options = _options(url)
    for name, reason in _REFUSED.items():
        if name in options:
            raise ConfigurationError(
                f"The database URL has the option {name}. {reason}",
                remedy="Take it out of KIZAMI_DATABASE_URL.",
                option=name,
            )
    return Place(make_conninfo(**{**_DEFAULTS, **options}), _shown(options))


def _options(url: str) -> dict[str, Any]:
    scheme = url.partition("://")[0].lower()
    if scheme not in SCHEMES:
        raise ConfigurationError("The database URL is not one of PostgreSQL.", remedy=_EXAMPLE)
    try:
        options = conninfo_to_dict(url)
    except ProgrammingError as error:
        raise _unreadable(str(error), url) from None
    if _is_torn(options):
        raise _unreadable("", url)
    return options


def _is_torn(options: dict[str, Any]) -> bool:
    """Tell whether a password with an unencoded character was taken apart: its pieces must not be shown as names."""
    hosts = str(options.get("host", "")).split(",")
    ports = str(options.get("port", "")).split(",")
    torn_host = any("@" in host[1:] for host in hosts)
    return torn_host or any(port and not port.isdigit() for port in ports) or "@" in str(options.get("dbname", ""))


def _unreadable(said: str, url: str) -> ConfigurationError:
    """Return the error for a URL that libpq refuses; of what libpq says, only the name of an option is safe to show."""
    subject, _, option = said.partition("invalid URI query parameter: ")
    if option and not subject and "@" not in url.partition("?")[2]:
        name = option.strip().strip('"')
        return ConfigurationError(
            f"The database URL has an option {name}, which PostgreSQL doesn't know.",
            remedy="Take it out of KIZAMI_DATABASE_URL, or mend its name.",
            option=name,
        )
    return ConfigurationError(
        "The database URL can't be read.",
        remedy="Write special characters of the password percent-encoded (@ as %40): postgresql://user:…@host/database.",
    )


def _shown(options: dict[str, Any]) -> str:
    if "service" in options and "host" not in options:
        return f"service {options['service']}"
    hosts = str(options.get("host") or options.get("hostaddr") or "localhost").split(",")
    ports = str(options.get("port") or "").split(",")
    places = [f"{host}:{port}" if port else host for host, port in _paired(hosts, ports)]
    return f"{options.get('dbname') or options.get('user') or 'default'} on {', '.join(places)}"


def _paired(hosts: list[str], ports: list[str]) -> list[tuple[str, str]]:
    return list(zip(hosts, ports if len(ports) == len(hosts) else ports[:1] * len(hosts), strict=True))
