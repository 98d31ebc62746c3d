"""`fencerow limits`: list, show, set, remove."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from fencerow.command import output
from fencerow.command.database import actor, working
from fencerow.command.layout import Column
from fencerow.command.options import app_option, asked, database_options, json_option, utc_option
from fencerow.command.times import Times
from fencerow.core.client.base import ClientBase
from fencerow.core.errors import InvalidInput, exits
from fencerow.limits.client import LimitVerbs
from fencerow.limits.definition import Limit, Rate, check_name
from fencerow.limits.errors import UnknownLimit
from fencerow.limits.limits import LimitRecord
from fencerow.limits.room import room_now

NONE = "none"
COLUMNS = (
    Column("limit", least=12),
    Column("slots"),
    Column("rate", least=10),
    Column("hours", least=12, rank=1),
    Column("set", rank=2),
)


@click.group(invoke_without_command=True)
@json_option
@utc_option
@database_options
@app_option
@click.pass_context
def limits(context: click.Context) -> None:
    """List, show, set and remove limits. Without a verb: list."""
    if context.invoked_subcommand is None:
        _list(context)


@limits.command("list")
@json_option
@utc_option
@database_options
@app_option
@click.pass_context
def list_(context: click.Context) -> None:
    """List limits."""
    _list(context)


@limits.command()
@click.argument("name")
@json_option
@utc_option
@database_options
@app_option
@click.pass_context
def show(context: click.Context, name: str) -> int:
    """Show a limit: what it says, who set it, and whether it lets something start."""
    with working(asked(context)) as engine:
        found = LimitVerbs(ClientBase(engine)).get(name)
    if asked(context).json:
        output.say_json(_document(found))
        return exits.OK
    at = Times(found.now_us, asked(context).utc)
    limit = found.limit
    by = f" by {found.set_by}" if found.set_by else ""
    output.facts(
        {
            "limit": found.name,
            "slots": limit.slots,
            "rate": None if limit.rate is None else str(limit.rate),
            "hours": ", ".join(limit.hours) or None,
            "set": f"{at.full(found.set_at_us)}{by}",
            "reason": found.reason,
            "declared version": found.version or None,
            "closed until": _closed(found, at),
        }
    )
    return exits.OK


@limits.command("set")
@click.argument("name")
@click.option("--slots", metavar="N", help="How many jobs may run at once, or `none`.")
@click.option("--rate", metavar="RATE", help="How many may start: 100/min, 1/s, 5/10s; or `none`.")
@click.option("--burst", type=int, metavar="N", help="How many may start at once after a pause.")
@click.option(
    "--hours",
    multiple=True,
    metavar="HOURS",
    help="When jobs may start: `mon-fri 09:00-17:00 Europe/Berlin`; or `none`.",
)
@click.option("--reason", metavar="TEXT", help="Why; shown by `limits show`.")
@json_option
@database_options
@app_option
@click.pass_context
def set_(context: click.Context, /, name: str, reason: str | None, **given: Any) -> int:
    """Make or change a limit. NAME is queue:NAME for a queue, or fleet for all jobs. What is not said stays."""
    with working(asked(context)) as engine:
        known = LimitVerbs(ClientBase(engine, actor=actor(asked(context).config())))
        limit = _changed(_known(known, check_name(name)), name, given)
        changed = known.define(limit, reason=reason)
    if asked(context).json:
        output.say_json({"limit": name, "changed": changed, **_said(limit)})
    else:
        output.say_text(f"{name}: {limit}" if changed else f"{name} was so already: {limit}")
    return exits.OK


@limits.command()
@click.argument("name")
@json_option
@database_options
@app_option
@click.pass_context
def remove(context: click.Context, name: str) -> int:
    """Forget a limit: from the next start on it binds nobody."""
    with working(asked(context)) as engine:
        LimitVerbs(ClientBase(engine, actor=actor(asked(context).config()))).remove(name)
    if asked(context).json:
        output.say_json({"limit": name, "removed": True})
    else:
        output.say_text(f"{name} is removed")
    return exits.OK


def _known(known: LimitVerbs, name: str) -> Limit | None:
    """What is there to be changed; nothing, if nobody defined it or nobody can understand it."""
    try:
        return known.get(name).limit
    except (UnknownLimit, InvalidInput):
        return None


def _changed(known: Limit | None, name: str, given: dict[str, Any]) -> Limit:
    """The definition that is meant: what is known, with what was said."""
    hours = given["hours"] or (known.hours if known else ())
    return Limit(
        name,
        slots=_slots(given["slots"], known.slots if known else None),
        rate=_rate(given, known.rate if known else None),
        hours=() if NONE in hours else hours,
    )


def _slots(said: str | None, known: int | None) -> int | None:
    if said is None or said == NONE:
        return None if said == NONE else known
    if not said.isascii() or not said.isdigit():
        raise InvalidInput(
            f"--slots is {ascii(said)[:40]}", "a whole number or `none` is expected", "correct it"
        )
    return int(said)


def _rate(given: dict[str, Any], known: Rate | None) -> Rate | None:
    said, burst = given["rate"], given["burst"]
    if said == NONE:
        return None
    if said is not None:
        return Rate.parse(said, burst=burst or (known.burst if known else 1))
    if burst is None:
        return known
    if known is None:
        raise InvalidInput("--burst was given without --rate", "the limit has no rate yet", "give --rate too")
    return replace(known, burst=burst)


def _list(context: click.Context) -> None:
    with working(asked(context)) as engine:
        found = LimitVerbs(ClientBase(engine)).known()
    if asked(context).json:
        output.say_json([_document(each) for each in found])
        return
    output.table(COLUMNS, [_row(each, asked(context).utc) for each in found], none="no limit is defined")


def _row(found: LimitRecord, utc: bool) -> tuple[object, ...]:
    when = Times(found.now_us, utc).when(found.set_at_us)
    try:
        limit = found.limit
    except InvalidInput as error:
        return found.name, None, error.what, None, when
    rate = None if limit.rate is None else str(limit.rate)
    return found.name, limit.slots, rate, ", ".join(limit.hours) or None, when


def _document(found: LimitRecord) -> dict[str, object]:
    try:
        said = _said(found.limit)
    except InvalidInput as error:
        said = {"error": error.what}
    return {
        "limit": found.name,
        **said,
        "set_at": None if found.set_at is None else found.set_at.isoformat(),
        "set_by": found.set_by,
        "reason": found.reason,
        "revision": found.revision,
        "version": found.version,
    }


def _said(limit: Limit) -> dict[str, object]:
    rate = limit.rate
    return {
        "slots": limit.slots,
        "rate": None if rate is None else {"count": rate.count, "per_s": rate.per_s, "burst": rate.burst},
        "hours": list(limit.hours),
    }


def _closed(found: LimitRecord, at: Times) -> str | None:
    """Until when time alone keeps everything from starting."""
    room = room_now(found.limit, found.memory, found.now_us, held=0, wanted=1)
    if room.starts_us:
        return None
    return room.why if room.again_us is None else f"{at.full(room.again_us)}: {room.why}"
