"""Numbers with a fraction on the command line: bounded, and never NaN."""

from __future__ import annotations

from kizami.core.errors import InvalidInputError


def require_within(option: str, value: float, least: float, most: float) -> float:
    """Return the number if it lies between the two. Raises InvalidInputError naming the option.

    The bounds that typer knows of are in the help; it lets NaN through, which is neither below nor above.
    """
    if least <= value <= most:
        return value
    remedy = f"Give a number from {least:g} to {most:,.10g}."
    raise InvalidInputError(f"{option} is {value}.", remedy=remedy, path=option)
