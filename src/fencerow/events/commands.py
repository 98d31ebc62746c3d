"""`fencerow events`: groups, lag, parked events, redrive, replay, remove, show."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import click

from fencerow.command import output
from fencerow.command.database import in_person, times, working
from fencerow.command.documents import plain
from fencerow.command.groups import group_of
from fencerow.command.options import asked, limit_option, usual_options, utc_option
from fencerow.command.times import span
from fencerow.core.errors import InvalidInput
from fencerow.db.engine import Engine
from fencerow.db.errors import exits
from fencerow.db.text import amount
from fencerow.events import shown
from fencerow.events.asides import discard, parked, redrive
from fencerow.events.bus import show as show_operation
from fencerow.events.bus import told
from fencerow.events.consumers import partitions
from fencerow.events.groups import GroupStart, group_named, groups, remove_group, replay
from fencerow.events.lag import lags, retention_estimate
from fencerow.events.settings import EventSettings

F = TypeVar("F", bound=Callable[..., Any])
PLACE = re.compile(r"[0-9]{1,18}")


@click.command("groups")
@utc_option
@usual_options
@click.pass_context
def groups_(context: click.Context) -> None:
    """List the groups: topics, partitions, and who reads them."""
    with working(asked(context)) as engine:
        found = [(group, engine.run(partitions(group.name))) for group in engine.run(groups())]
        at = times(engine, asked(context))
    if asked(context).json:
        output.say_json([{**plain(group), "readers": plain(parts)} for group, parts in found])
        return
    rows = [
        (
            group.name,
            " ".join(group.topics),
            group.partitions,
            sum(part.is_alive for part in parts),
            group.generation,
            at.when(group.created_at_us),
        )
        for group, parts in found
    ]
    output.table(shown.GROUPS, rows, none="no group reads events here")


events = group_of(
    groups_, "events", "Show the groups that read events, and control them. Without a verb: groups."
)


@events.command("lag")
@click.argument("group", required=False)
@utc_option
@usual_options
@click.pass_context
def lag_(context: click.Context, group: str | None) -> None:
    """Show how far groups are behind, in events and seconds, and how fast the log grows."""
    with working(asked(context)) as engine:
        found = engine.run(lags(group))
        kept = EventSettings.of(asked(context).config())
        log = engine.run(retention_estimate(keep=kept.retention_events_max))
        at = times(engine, asked(context))
    if asked(context).json:
        output.say_json({"groups": found, "log": log})
        return
    output.table(
        shown.LAG,
        [
            (
                each.group,
                each.events,
                span(each.seconds) if each.events else "-",
                each.unplaced or None,
                each.waiting or None,
                each.parked or None,
                each.readers,
                at.when(each.alarmed_at_us),
            )
            for each in found
        ],
        none="no group reads events here",
    )
    age = "" if log.oldest_age_s is None else f", its oldest event is {span(log.oldest_age_s)} old"
    lasts = "" if log.lasts_s is None else f"; the events that retention keeps last {span(log.lasts_s)}"
    output.say_text(f"the log goes to position {log.head}, {log.per_second:.1f} events a second{age}{lasts}")


@events.command("parked")
@click.argument("group", required=False)
@limit_option(50, most=1000)
@utc_option
@usual_options
@click.pass_context
def parked_(context: click.Context, group: str | None, limit: int) -> None:
    """List parked events, with the error of their last delivery."""
    with working(asked(context)) as engine:
        if group is not None:
            engine.run(group_named(group))
        found = engine.run(parked(group, limit=limit))
        at = times(engine, asked(context))
    if asked(context).json:
        output.say_json([shown.parked_document(each) for each in found])
        return
    output.table(
        shown.PARKED,
        [
            (
                each.group,
                each.seq,
                each.event.topic if each.event else "(gone)",
                each.event.key if each.event else None,
                each.event.deliveries if each.event else None,
                at.when(each.parked_at_us),
                shown.message(each),
            )
            for each in found
        ],
        none="no event is parked",
    )


def which_parked(command: F) -> F:
    """A group, and which of its parked events are meant."""
    for option in (
        click.option("--all", "everything", is_flag=True, help="All parked events of the group."),
        click.argument("places", metavar="[POSITION]...", nargs=-1),
        click.argument("group"),
    ):
        command = option(command)
    return command


@events.command("redrive")
@which_parked
@usual_options
@click.pass_context
def redrive_(context: click.Context, group: str, places: Sequence[str], everything: bool) -> int:
    """Deliver parked events again: those at these positions, or --all."""
    wanted = _wanted(places, everything)
    with working(asked(context)) as engine:
        moved = in_person(engine, asked(context)).run(redrive(group, wanted))
        _wake(engine)
    if asked(context).json:
        output.say_json({"group": group, "redriven": len(moved)})
    else:
        output.say(f"{amount(len(moved), 'event')} of {group}: delivered again")
    return exits.OK if moved else exits.FAILED


@events.command("discard")
@which_parked
@usual_options
@click.pass_context
def discard_(context: click.Context, group: str, places: Sequence[str], everything: bool) -> int:
    """Forget parked events: those at these positions, or --all. The group never handles them."""
    wanted = _wanted(places, everything)
    with working(asked(context)) as engine:
        engine.run(group_named(group))
        count = in_person(engine, asked(context)).run(discard(group, wanted))
    if asked(context).json:
        output.say_json({"group": group, "discarded": count})
    else:
        output.say(f"{amount(count, 'event')} of {group}: no longer parked, and never handled")
    return exits.OK if count else exits.FAILED


@events.command("replay")
@click.argument("group")
@click.option(
    "--from",
    "start",
    required=True,
    metavar="POSITION|TIME|beginning",
    help="TIME: 2026-11-21T08:00:00+01:00",
)
@usual_options
@click.pass_context
def replay_(context: click.Context, group: str, start: str) -> int:
    """Let a group read again from a position, a time, or the beginning on."""
    with working(asked(context)) as engine:
        done = in_person(engine, asked(context)).run(replay(group, _start(start)))
        _wake(engine)
    if asked(context).json:
        output.say_json({"group": group, "after": done.after, "generation": done.generation})
    else:
        output.say(f"{group} reads again after position {done.after}, as generation {done.generation}")
    return exits.OK


@events.command("remove")
@click.argument("group")
@usual_options
@click.pass_context
def remove_(context: click.Context, group: str) -> int:
    """Forget a group that nobody reads for any more: its position, and the events that it put aside or parked."""
    with working(asked(context)) as engine:
        in_person(engine, asked(context)).run(remove_group(group))
    if asked(context).json:
        output.say_json({"group": group, "removed": True})
    else:
        output.say(f"{group} is forgotten")
    return exits.OK


@events.command("show")
@click.argument("place", metavar="POSITION")
@click.option("--id", "by_id", is_flag=True, help="The number is the event's id.")
@utc_option
@usual_options
@click.pass_context
def show_(context: click.Context, place: str, by_id: bool) -> int:
    """Show one event by its position or its id."""
    number = _place(place)
    with working(asked(context)) as engine:
        found = engine.run(show_operation(None if by_id else number, number if by_id else None))
        at = times(engine, asked(context))
    document = shown.event_document(found)
    if asked(context).json:
        output.say_json(document)
        return exits.OK
    data, headers = output.document(document["data"]), document["headers"]
    told_headers = None if headers is None else output.document(headers)
    moment = at.full(found.published_at_us)
    output.facts({**document, "published_at": moment, "headers": told_headers, "data": data})
    return exits.OK


def _wake(engine: Engine) -> None:
    told(engine)
    engine.flush(1.0)


def _wanted(places: Sequence[str], everything: bool) -> list[int] | None:
    if bool(places) == everything:
        raise InvalidInput(
            "say which events are meant",
            "either their positions or --all is expected",
            "`fencerow events parked` lists them",
        )
    return None if everything else [_place(each) for each in places]


def _place(text: str) -> int:
    if not PLACE.fullmatch(text):
        raise InvalidInput(
            f"{ascii(text)[:40]} is no position in the log",
            "a number is expected",
            "`fencerow events lag` shows how far the log goes",
        )
    return int(text)


def _start(text: str) -> GroupStart:
    if text == "beginning":
        return GroupStart(text)
    if PLACE.fullmatch(text):
        return GroupStart.of(int(text))
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        when = None
    if when is None or when.tzinfo is None:
        raise InvalidInput(
            f"--from {ascii(text)[:60]} is neither a position nor a time",
            "a number, beginning, or a time with its offset is expected",
            "write 2026-11-21T08:00:00+00:00",
        )
    return GroupStart.of(when)
