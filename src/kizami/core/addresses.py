"""Addresses to listen on: which are this machine's own, and what to do when one can't be had."""

from __future__ import annotations

import errno
import ipaddress
from typing import Final

from kizami.core.errors import ConfigurationError

PORT_MAX: Final = 65_535
_SHOWN_MAX: Final = 100
_NAME_A_HOST: Final = "Name 127.0.0.1 for this machine only, 0.0.0.0 for all of its addresses, or one of them."
_REMEDIES: Final = {
    errno.EADDRINUSE: "Choose another port, or end what listens there; port 0 takes a free one.",
    errno.EACCES: "Choose a port above 1023, or give the process the right to listen below.",
    errno.EADDRNOTAVAIL: f"It is not an address of this machine. {_NAME_A_HOST}",
    errno.EAFNOSUPPORT: "This machine doesn't have that kind of address; name one of the other kind.",
}


def is_loopback(host: str) -> bool:
    """Tell whether nobody but this machine can reach an address; of names, only localhost is known to be so."""
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def require_port(what: str, port: int) -> None:
    """Raise ConfigurationError unless `port` is one."""
    if not 0 <= port <= PORT_MAX:
        message = f"{what} can't listen on port {port}."
        raise ConfigurationError(message, remedy=f"Choose one from 1 to {PORT_MAX}; 0 takes a free one.")


def unknown_host(what: str, host: str) -> ConfigurationError:
    """Return the error for a host that no address is known of, or that can't be the name of any."""
    shown = repr(host[:_SHOWN_MAX])
    return ConfigurationError(f"{what} can't listen on {shown}: no such host is known.", remedy=_NAME_A_HOST)


def not_listening(what: str, host: str, port: int, number: int | None, reason: str) -> ConfigurationError:
    """Return the error for an address that was refused with an operating system's error number."""
    remedy = _REMEDIES.get(number or 0, "Choose another host or port; port 0 takes a free one.")
    return ConfigurationError(f"{what} can't listen on {host[:_SHOWN_MAX]} port {port}: {reason}.", remedy=remedy)
