"""`kizami schedules`: look at schedules, pause, resume and trigger them."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kizami.cli.exit_codes import ExitCode
from kizami.cli.group import Group
from kizami.cli.loading import AppPlace
from kizami.cli.opened import with_open_app
from kizami.cli.printing import AsJson, print_facts, print_json, print_line, print_table
from kizami.core.times import format_local
from kizami.core.timing import CronTiming, fires, to_json
from kizami.core.zone import TimeZone, load_zone
from kizami.store.protocol import FireOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kizami.app.app import Kizami
    from kizami.core.timing import Timing
    from kizami.store.protocol import FireRecord, Schedule

schedules = typer.Typer(cls=Group, help="Look at schedules; pause, resume and trigger them.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule.")]
_LEDGER_LINES = 10
_INSTANTS = (
    "next_at",
    "last_planned_at",
    "last_fired_at",
    "skipped_at",
    "last_error_at",
    "paused_at",
    "registered_at",
    "anchor_at",
)


@schedules.command("list")
def list_all(place: AppPlace, as_json: AsJson = False) -> None:
    """List the app's schedules with their next and last ticks."""
    stored, unstored = with_open_app(place, _listed)
    if as_json:
        print_json([_as_json(one) for one in stored])
        return
    rows = [_row(one) for one in stored]
    rows += [(name, description, "", "", "not registered yet") for name, description in unstored]
    print_table(("schedule", "timing", "next", "last fired", "state"), rows, "This app has no schedules.")


@schedules.command()
def show(place: AppPlace, name: Name, as_json: AsJson = False) -> None:
    """Show one schedule and the newest lines of its ledger."""
    found, ledger = with_open_app(place, lambda app: _with_ledger(app, name))
    if as_json:
        print_json(_as_json(found) | {"ledger": [_plain(line) for line in ledger]})
        return
    zone = _zone(found.timing)
    print_facts((field, _shown(field, value, zone)) for field, value in _as_json(found).items() if field != "timing")
    lines = [
        (format_local(line.planned_at, zone), line.kind, line.outcome, line.job_id, line.reason) for line in ledger
    ]
    print_line("")
    print_table(("planned", "kind", "outcome", "job", "reason"), lines, "It has not ticked yet.")


@schedules.command()
def preview(
    place: AppPlace,
    name: Name,
    count: Annotated[int, typer.Option(help="How many planned times.", min=1, max=1_000)] = 10,
    as_json: AsJson = False,
) -> None:
    """Show the next planned times of a schedule; one that isn't registered yet is planned as if it were now."""
    timing, times = with_open_app(place, lambda app: _planned(app, name, count))
    if as_json:
        print_json(list(times))
        return
    for at in times:
        print_line(format_local(at, _zone(timing)))


@schedules.command()
def pause(place: AppPlace, name: Name, as_json: AsJson = False) -> None:
    """Stop a schedule's fires; jobs that are enqueued already go on."""
    _print_changed(with_open_app(place, lambda app: app.schedules.pause(name)), as_json=as_json)


@schedules.command()
def resume(place: AppPlace, name: Name, as_json: AsJson = False) -> None:
    """Let a paused schedule fire again, from its first planned time after now."""
    _print_changed(with_open_app(place, lambda app: app.schedules.resume(name)), as_json=as_json)


@schedules.command()
def trigger(place: AppPlace, name: Name, as_json: AsJson = False) -> None:
    """Fire a schedule once now, even when it is paused; its plan stays as it is."""
    record = with_open_app(place, lambda app: app.schedules.trigger(name, by="command line"))
    if as_json:
        print_json(_plain(record))
    else:
        print_line(", ".join(filter(None, (f"{name}: {record.outcome}", record.reason, record.job_id))))
    if record.outcome is not FireOutcome.FIRED:
        raise typer.Exit(ExitCode.FAILED)


async def _listed(app: Kizami) -> tuple[tuple[Schedule, ...], list[tuple[str, str]]]:
    stored = await app.schedules.list()
    known = {one.name for one in stored}
    waiting = [entry.scheduled().definition for entry in app.definitions if entry.name not in known]
    return stored, [(definition.name, definition.description) for definition in waiting]


async def _with_ledger(app: Kizami, name: str) -> tuple[Schedule, tuple[FireRecord, ...]]:
    return await app.schedules.get(name), await app.schedules.ledger(name, _LEDGER_LINES)


async def _planned(app: Kizami, name: str, count: int) -> tuple[Timing, tuple[int, ...]]:
    known = {one.name for one in await app.schedules.list()}
    entry = next((entry for entry in app.definitions if entry.name == name), None)
    if entry is None or name in known:
        found = await app.schedules.get(name)
        return found.known_timing, await app.schedules.preview(name, count)
    now = app.runtime.clock.now_ms()
    upcoming = fires(entry.timing, now, now)
    return entry.timing, tuple(next(upcoming) for _ in range(count))


def _print_changed(found: Schedule, *, as_json: bool) -> None:
    if as_json:
        print_json(_as_json(found))
    else:
        print_line(f"{found.name}: {_state(found)}, next {_local(found.next_at, _zone(found.timing))}")


def _row(one: Schedule) -> tuple[str, ...]:
    zone = _zone(one.timing)
    return one.name, one.description, _local(one.next_at, zone), _local(one.last_fired_at, zone), _state(one)


def _state(one: Schedule) -> str:
    if one.broken is not None:
        return f"broken: {one.broken}"
    if one.paused_at is not None:
        return f"paused since {format_local(one.paused_at, _zone(one.timing))}"
    return "driven from outside" if one.driver == "external" else "active"


def _shown(field: str, value: object, zone: TimeZone) -> object:
    return _local(value, zone) if field in _INSTANTS and isinstance(value, int) else value


def _local(at: int | None, zone: TimeZone) -> str:
    return "-" if at is None else format_local(at, zone)


def _zone(timing: Timing | None) -> TimeZone:
    return timing.zone if isinstance(timing, CronTiming) else load_zone("UTC")


def _as_json(one: Schedule) -> dict[str, Any]:
    return _plain(one) | {"timing": None if one.timing is None else to_json(one.timing)}


def _plain(record: Schedule | FireRecord) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in _fields(record)}


def _fields(record: Schedule | FireRecord) -> Iterable[Any]:
    return fields(record)
