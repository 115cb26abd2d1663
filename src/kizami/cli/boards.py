"""`kizami boards`: look at status boards, and switch one on whose channel can be written to again."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from kizami.cli.group import Group
from kizami.cli.loading import AppPlace
from kizami.cli.opened import with_open_app
from kizami.cli.printing import AsJson, print_json, print_line, print_table

if TYPE_CHECKING:
    from kizami.store.protocol import BoardRow

boards = typer.Typer(cls=Group, help="Look at status boards; switch one on again.", no_args_is_help=True)


@boards.command("list")
def list_all(place: AppPlace, as_json: AsJson = False) -> None:
    """List the boards by name and channel."""
    found = with_open_app(place, lambda app: app.boards.list())
    if as_json:
        print_json({"boards": [asdict(one) | {"off": one.off} for one in found]})
        return
    rows = [(one.name, one.channel, _state(one), one.posts, one.edits, one.note) for one in found]
    print_table(("name", "channel", "state", "posts", "edits", "note"), rows, "No boards.")


@boards.command("switch-on")
def switch_on(
    place: AppPlace,
    channel: Annotated[str, typer.Argument(metavar="CHANNEL", help="The id of the Slack channel.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The board's name.")],
) -> None:
    """Let a board that is off be published at its next tick; by itself it is tried again once an hour."""
    with_open_app(place, lambda app: app.boards.switch_on(channel, name))
    print_line(f"{name} in {channel}: on")


def _state(board: BoardRow) -> str:
    if board.off:
        return "off"
    if board.in_doubt_since is not None:
        return "in_doubt"
    return "unposted" if board.ts is None else "posted"
