"""`fencerow schedules`: list, show, next, explain, and the verbs that change none of their times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from fencerow.command import output
from fencerow.command.database import acting, times, working
from fencerow.command.documents import plain
from fencerow.command.groups import group_of
from fencerow.command.options import asked, limit_option, usual_options, utc_option
from fencerow.command.times import Times, iso
from fencerow.core.model.instants import instant_us
from fencerow.db.engine import Engine
from fencerow.db.errors import exits
from fencerow.schedules.command_texts import (
    COLUMNS,
    TICKS,
    document_of,
    facts_of,
    on_the_wall,
    row_of,
    sentences,
    tick_of,
)
from fencerow.schedules.definitions import RowKind
from fencerow.schedules.shown import ScheduleRecord, starts_us
from fencerow.schedules.verbs import LIMIT_MAX, ScheduleVerbs

F = TypeVar("F", bound=Callable[..., Any])


def entity_option(command: F) -> F:
    """--entity: one row of a schedule with entities."""
    return click.option("--entity", metavar="NAME", help="One entity of the schedule instead of all of it.")(
        command
    )


def apart(name: str, entity: str | None) -> tuple[str, str | None]:
    """Name and entity, also where they were written as lists show them: `nightly/f01`."""
    if entity is None and "/" in name:
        name, _, entity = name.partition("/")
    return name, entity


@contextmanager
def verbs(context: click.Context) -> Iterator[tuple[ScheduleVerbs, Engine]]:
    """The verbs on the database that is meant, in the name of who calls."""
    with working(asked(context)) as engine:
        yield ScheduleVerbs(acting(engine, asked(context))), engine


@click.command("list")
@click.argument("name", required=False)
@click.option("--entities", is_flag=True, help="Show the rows of the entities too.")
@limit_option(1000)
@utc_option
@usual_options
@click.pass_context
def list_(context: click.Context, name: str | None, entities: bool, limit: int) -> None:
    """List schedules: when they fire, the next and the last fire, and what is paused or in trouble."""
    with verbs(context) as (known, engine):
        found = known.listed(name=name, entities=entities, limit=limit)
        at = times(engine, asked(context))
    if asked(context).json:
        output.say_json([document_of(each) for each in found])
        return
    output.table(COLUMNS, [row_of(each, at) for each in found], none="no schedule is known")
    if len(found) == limit:
        output.say(f"(there may be more: --limit shows more than {limit}, NAME one of them)")


schedules = group_of(
    list_, "schedules", "List schedules, look at one, and change them. Without a verb: list."
)


@schedules.command()
@click.argument("name")
@entity_option
@click.option(
    "--ticks", type=click.IntRange(1, 1000), default=5, show_default=True, help="Show so many fires."
)
@utc_option
@usual_options
@click.pass_context
def show(context: click.Context, name: str, entity: str | None, ticks: int) -> None:
    """Show a schedule: its rules, what it submits, and which job each of its last fires made."""
    name, entity = apart(name, entity)
    with verbs(context) as (known, engine):
        found = known.get(name, entity or "")
        fires = known.ticks(name, entity, limit=ticks)
        at = times(engine, asked(context))
    if asked(context).json:
        output.say_json({**document_of(found), "ticks": plain(fires)})
        return
    output.facts(facts_of(found, at))
    output.say()
    output.table(TICKS, [tick_of(each, at) for each in fires], none="it has not fired yet")


@schedules.command("next")
@click.argument("name")
@entity_option
@click.option(
    "-n", "--count", type=click.IntRange(1, 1000), default=5, show_default=True, help="Show this many."
)
@utc_option
@usual_options
@click.pass_context
def next_(context: click.Context, name: str, entity: str | None, count: int) -> None:
    """Show when a schedule fires next, whether or not it is paused."""
    name, entity = apart(name, entity)
    with verbs(context) as (known, engine):
        found = known.get(name, entity or "")
        rows = known.listed(name=name, entities=True, limit=LIMIT_MAX) if found.kind is RowKind.HEAD else []
        fires = [
            (found, instant_us(each, "a fire")) for each in known.next_fires(name, entity or "", count=count)
        ]
        at = times(engine, asked(context))
    of_all = [(each, each.next_us) for each in rows if each.next_us is not None and each.fires_by_itself]
    fires += sorted(of_all, key=lambda fire: fire[1])[:count]
    if asked(context).json:
        output.say_json([_fire(each, fire_us) for each, fire_us in fires])
        return
    if found.kind is RowKind.HEAD:
        told = f"the next fire of each of its entities, the soonest {len(fires)} of {len(of_all)}"
        output.say_text(told if fires else f"{name} has no entity that fires")
        if len(rows) == LIMIT_MAX:
            output.say(f"(of the first {LIMIT_MAX} by name)")
    for each, fire_us in fires:
        output.say_text(
            f"{_label(each, found)}{at.full(fire_us)}{on_the_wall(each, fire_us)}{_note(each, fire_us, at)}"
        )


def _fire(row: ScheduleRecord, fire_us: int) -> dict[str, Any]:
    entity = {"entity": row.entity} if row.entity else {}
    return {**entity, "fires": iso(fire_us), "starts": iso(starts_us(row, fire_us))}


def _label(row: ScheduleRecord, asked_for: ScheduleRecord) -> str:
    return "" if row is asked_for else f"{row.entity}: "


def _note(row: ScheduleRecord, fire_us: int, at: Times) -> str:
    started_us = starts_us(row, fire_us)
    if started_us is None:
        return ": in a maintenance window, makes no job"
    return "" if started_us == fire_us else f": in a maintenance window, starts {at.full(started_us)}"


@schedules.command()
@click.argument("name")
@entity_option
@usual_options
@click.pass_context
def explain(context: click.Context, name: str, entity: str | None) -> None:
    """Say in words when a schedule fires, and what becomes of fires that are missed or overlap."""
    name, entity = apart(name, entity)
    with verbs(context) as (known, _):
        found = known.get(name, entity or "")
    lines = sentences(found)
    if asked(context).json:
        output.say_json({"name": found.name, "entity": found.entity, "words": lines})
        return
    for line in lines:
        output.say_text(line)


@schedules.command()
@click.argument("name")
@entity_option
@click.option("--force", is_flag=True, help="Also while an earlier job has not ended.")
@usual_options
@click.pass_context
def run(context: click.Context, name: str, entity: str | None, force: bool) -> int:
    """Submit its job now, also while it is paused. Its next fire stays where it is."""
    name, entity = apart(name, entity)
    with verbs(context) as (known, _):
        runs = known.run(name, entity, force=force)
    if asked(context).json:
        output.say_json(plain(runs))
    else:
        for each in runs:
            label = f"{each.entity}: " if each.entity else ""
            output.say(label + (each.job_id or "no job: an earlier one has not ended (--force)"))
    return exits.OK if any(each.job_id for each in runs) else exits.FAILED


@schedules.command()
@click.argument("name")
@entity_option
@click.option("--reason", metavar="TEXT", help="Why; shown by `schedules list`.")
@usual_options
@click.pass_context
def pause(context: click.Context, name: str, entity: str | None, reason: str | None) -> int:
    """Let a schedule fire no more until it is resumed. Jobs that it made go on. Deploys do not end the pause."""
    name, entity = apart(name, entity)
    with verbs(context) as (known, _):
        rows = known.pause(name, entity, reason=reason)
    _say_change(context, name, entity, rows, "paused", "was paused already; the first reason is kept")
    return exits.OK


@schedules.command()
@click.argument("name")
@entity_option
@click.option("--run-now", is_flag=True, help="Submit its job at once, too.")
@usual_options
@click.pass_context
def resume(context: click.Context, name: str, entity: str | None, run_now: bool) -> int:
    """Let a schedule fire again, at its next time. What it would have fired meanwhile is not made up.

    An entity that was paused by itself stays so, until it is resumed by itself.
    """
    name, entity = apart(name, entity)
    with verbs(context) as (known, _):
        rows = known.resume(name, entity, run_now=run_now)
        left = 0 if entity else sum(each.paused_entities for each in known.listed(name=name))
    _say_change(context, name, entity, rows, "resumed", "was not paused")
    if left and not asked(context).json:
        stay = "1 entity stays" if left == 1 else f"{left} entities stay"
        output.say(f"{stay} paused, each for its own reason (--entity)")
    return exits.OK


@schedules.command()
@click.argument("name")
@entity_option
@usual_options
@click.pass_context
def remove(context: click.Context, name: str, entity: str | None) -> int:
    """Remove a schedule that people made. Its jobs stay."""
    name, entity = apart(name, entity)
    with verbs(context) as (known, _):
        rows = known.remove(name, entity)
    _say_change(context, name, entity, rows, "removed", "is not there")
    return exits.OK


def _say_change(
    context: click.Context, name: str, entity: str | None, rows: int, what: str, otherwise: str
) -> None:
    if asked(context).json:
        output.say_json({"name": name, "entity": entity, what: rows})
        return
    full = f"{name}/{entity}" if entity else name
    more = f" ({rows} rows)" if rows > 1 else ""
    output.say(f"{full} is {what}{more}" if rows else f"{full} {otherwise}")
