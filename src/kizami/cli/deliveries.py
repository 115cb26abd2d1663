"""`kizami deliveries`: look at deliveries, and owe again what was set aside."""

from __future__ import annotations

import json
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kizami.cli.group import Group
from kizami.cli.loading import AppPlace
from kizami.cli.opened import with_open_app
from kizami.cli.printing import AsJson, print_json, print_line, print_table
from kizami.core.errors import InvalidInputError

if TYPE_CHECKING:
    from kizami.store.protocol import Delivery

deliveries = typer.Typer(cls=Group, help="Look at deliveries; owe again what was set aside.", no_args_is_help=True)


class DeliveryState(StrEnum):
    """Where a delivery stands."""

    OWED = "owed"
    DELIVERED = "delivered"
    IN_DOUBT = "in_doubt"
    SET_ASIDE = "set_aside"


@deliveries.command("list")
def list_some(
    place: AppPlace,
    state: Annotated[DeliveryState | None, typer.Option(help="Only deliveries in this state.")] = None,
    channel: Annotated[str | None, typer.Option(help="Only deliveries to the channel with this id.")] = None,
    limit: Annotated[int, typer.Option(help="How many deliveries.", min=1, max=1_000)] = 50,
    as_json: AsJson = False,
) -> None:
    """List deliveries, newest first."""
    found = with_open_app(place, lambda app: app.deliveries.list(channel, state, limit))
    if as_json:
        print_json({"deliveries": [_as_json(one) for one in found]})
        return
    rows = [(one.item, one.channel, _state(one), one.due, one.attempts, one.note) for one in found]
    print_table(("item", "channel", "state", "due", "attempts", "note"), rows, "No such deliveries.")


@deliveries.command()
def requeue(
    place: AppPlace,
    channel: Annotated[str, typer.Argument(metavar="CHANNEL", help="The id of the Slack channel.")],
    item: Annotated[str | None, typer.Argument(metavar="[ITEM]", help="The delivery that was set aside.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that was set aside in the channel instead.")] = False,
) -> None:
    """Owe a delivery that was set aside again, or all of a channel's; what is in doubt is looked for first."""
    if everything == (item is not None):
        raise InvalidInputError("Name an ITEM, or give --all, one of them.", path="ITEM")
    count = with_open_app(place, lambda app: app.deliveries.requeue(channel, item))
    print_line(f"{channel}: {count} owed again")


def _state(one: Delivery) -> DeliveryState:
    if one.delivered_at is not None:
        return DeliveryState.DELIVERED
    if one.set_aside_at is not None:
        return DeliveryState.SET_ASIDE
    return DeliveryState.OWED if one.in_doubt_since is None else DeliveryState.IN_DOUBT


def _as_json(one: Delivery) -> dict[str, Any]:
    return asdict(one) | {"content": json.loads(one.content), "state": _state(one)}
