"""`fencerow limits`: list, show, set, remove."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import click

from fencerow.command import output
from fencerow.command.database import acting, working
from fencerow.command.documents import plain
from fencerow.command.groups import group_of
from fencerow.command.layout import Column
from fencerow.command.options import asked, full_option, usual_options, utc_option
from fencerow.command.times import Times
from fencerow.core.client.base import ClientBase
from fencerow.core.errors import InvalidInput
from fencerow.core.model.job import instant
from fencerow.db.engine import Engine
from fencerow.db.errors import exits
from fencerow.limits.client import WAITING, WAITING_MAX, LimitVerbs
from fencerow.limits.definition import QUEUE, Limit, check_name
from fencerow.limits.errors import UnknownLimit
from fencerow.limits.limits import LimitRecord
from fencerow.limits.looking import LimitTurns
from fencerow.limits.rate import Breaker, Rate
from fencerow.operators.known_queues import meant, nobody_knows
from fencerow.turns.tables import say_turns
from fencerow.turns.telling import counted

NONE = "none"
COLUMNS = (
    Column("limit", least=12),
    Column("at once"),
    Column("rate", least=10),
    Column("hours", least=12, rank=1),
    Column("breaker", rank=2),
    Column("set", rank=2),
)
HOLDERS_SHOWN = 100


@click.command("list")
@utc_option
@usual_options
@click.pass_context
def list_(context: click.Context) -> None:
    """List limits."""
    with working(asked(context)) as engine:
        found = LimitVerbs(ClientBase(engine)).known()
    if asked(context).json:
        output.say_json([_document(each) for each in found])
        return
    output.table(COLUMNS, [_row(each, asked(context).utc) for each in found], none="no limit is defined")


limits = group_of(list_, "limits", "List, show, set and remove limits. Without a verb: list.")


@limits.command()
@click.argument("name")
@click.option(
    "--waiting",
    type=click.IntRange(1, WAITING_MAX),
    default=WAITING,
    show_default=True,
    help="Show so many of those that wait.",
)
@full_option
@utc_option
@usual_options
@click.pass_context
def show(context: click.Context, name: str, waiting: int) -> int:
    """Show a limit, or one key of it (NAME/KEY): what it says, whether it lets something start, the jobs that have its
    turns, and those that wait."""
    with working(asked(context)) as engine:
        turns = LimitVerbs(ClientBase(engine)).look(name, waiting=waiting)
    found = turns.limit
    if asked(context).json:
        output.say_json(_shown(turns))
        return exits.OK
    at = Times(turns.now_us, asked(context).utc)
    limit = found.limit
    by = f" by {found.set_by}" if found.set_by else ""
    output.facts(
        {
            "limit": turns.name,
            "at once": limit.at_once,
            "rate": None if limit.rate is None else str(limit.rate),
            "hours": ", ".join(limit.hours) or None,
            "breaker": None if limit.breaker is None else str(limit.breaker),
            "per key": "each key has it for itself" if limit.per_key else None,
            "set": f"{at.full(found.set_at_us)}{by}",
            "reason": found.reason,
            "declared version": found.version or None,
            "has turns": len(turns.holders) or None,
            "waiting": counted(turns.waiting_count) if turns.waiting_count else None,
            "starts again": _closed(turns, at),
        }
    )
    say_turns(turns.holders[:HOLDERS_SHOWN], turns.waiting, at, full=asked(context).full)
    return exits.OK


@limits.command("set")
@click.argument("name")
@click.option("--at-once", metavar="N", help="How many jobs may run at once, or `none`.")
@click.option("--rate", metavar="RATE", help="How many may start: 100/min, 1/s, 5/10s; or `none`.")
@click.option("--burst", type=int, metavar="N", help="How many may start at once after a pause.")
@click.option(
    "--strict/--even",
    default=None,
    help="Measure each start from the one before, so that two are never closer; or let the rate average.",
)
@click.option(
    "--hours",
    multiple=True,
    metavar="HOURS",
    help="When jobs may start: `mon-fri 09:00-17:00 Europe/Berlin`; or `none`.",
)
@click.option(
    "--breaker",
    metavar="FAILURES/TIME",
    help="Stop the starts after so many failures: 5/60s, 10/min; or `none`.",
)
@click.option("--stop", metavar="SECONDS", type=float, help="For how long the breaker stops them.")
@click.option("--trials", type=int, metavar="N", help="How many jobs may try after that.")
@click.option(
    "--per-key/--shared",
    default=None,
    help="Jobs name NAME/KEY, and each key has the whole limit for itself; or all share it.",
)
@click.option("--reason", metavar="TEXT", help="Why; shown by `limits show`.")
@usual_options
@click.pass_context
def set_(context: click.Context, /, name: str, reason: str | None, **given: Any) -> int:
    """Make or change a limit. NAME is queue:NAME for a queue, fleet for all jobs, or what jobs name in `limits=`.

    What is not said stays."""
    with working(asked(context)) as engine:
        known = LimitVerbs(acting(engine, asked(context)))
        was = _known(known, check_name(name))
        limit = _changed(was, name, given)
        others = [each.name for each in known.known()]
        changed = known.define(limit, reason=reason)
        unknown = None if was else _unknown(engine, name, others)
    if asked(context).json:
        output.say_json({"limit": name, "changed": changed, **_said(limit)})
    else:
        output.say_text(f"{name}: {limit}" if changed else f"{name} was so already: {limit}")
    if unknown:
        output.warn(unknown)
    return exits.OK


@limits.command()
@click.argument("name")
@usual_options
@click.pass_context
def remove(context: click.Context, name: str) -> int:
    """Forget a limit: from the next start on it binds nobody."""
    with working(asked(context)) as engine:
        LimitVerbs(acting(engine, asked(context))).remove(name)
    if asked(context).json:
        output.say_json({"limit": name, "removed": True})
    else:
        output.say_text(f"{name} is removed")
    return exits.OK


def _unknown(engine: Engine, name: str, others: list[str]) -> str | None:
    """What to tell of a limit that was made just now: a slip of the pen makes one that binds nobody."""
    if name.startswith(QUEUE):
        return ClientBase(engine).run(nobody_knows(name.removeprefix(QUEUE)))
    question = meant(name, others)
    return f"{name} is a new limit{question}" if question else None


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
        at_once=_at_once(given["at_once"], known.at_once if known else None),
        rate=_rate(given, known.rate if known else None),
        hours=() if NONE in hours else hours,
        breaker=_breaker(given, known.breaker if known else None),
        per_key=bool(known and known.per_key) if given["per_key"] is None else given["per_key"],
    )


def _at_once(said: str | None, known: int | None) -> int | None:
    if said is None or said == NONE:
        return None if said == NONE else known
    if not said.isascii() or not said.isdigit():
        raise InvalidInput(
            f"--at-once is {ascii(said)[:40]}", "a whole number or `none` is expected", "correct it"
        )
    return int(said)


def _rate(given: dict[str, Any], known: Rate | None) -> Rate | None:
    said = given["rate"]
    more = {name: given[name] for name in ("burst", "strict") if given[name] is not None}
    if said == NONE:
        return None
    if said is not None:
        kept = {"burst": known.burst, "strict": known.strict} if known else {}
        return Rate.parse(said, **{**kept, **more})
    if known is None and more:
        raise InvalidInput(
            f"--{next(iter(more))} was given without --rate", "the limit has no rate yet", "give --rate too"
        )
    return None if known is None else replace(known, **more)


def _breaker(given: dict[str, Any], known: Breaker | None) -> Breaker | None:
    said = given["breaker"]
    more = {
        name: given[of] for name, of in (("stop_s", "stop"), ("trials", "trials")) if given[of] is not None
    }
    if said == NONE:
        return None
    if said is not None:
        kept = {"stop_s": known.stop_s, "trials": known.trials} if known else {}
        return Breaker.parse(said, **{**kept, **more})
    if known is None and more:
        raise InvalidInput(
            "--stop and --trials belong to a breaker", "the limit has none yet", "give --breaker too"
        )
    return None if known is None else replace(known, **more)


def _row(found: LimitRecord, utc: bool) -> tuple[object, ...]:
    when = Times(found.now_us, utc).when(found.set_at_us)
    try:
        limit = found.limit
    except InvalidInput as error:
        return found.name, None, error.what, None, None, when
    rate = None if limit.rate is None else str(limit.rate)
    breaker = None if limit.breaker is None else str(limit.breaker)
    return found.name, limit.at_once, rate, ", ".join(limit.hours) or None, breaker, when


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
        "at_once": limit.at_once,
        "rate": None if rate is None else asdict(rate),
        "hours": list(limit.hours),
        "breaker": None if limit.breaker is None else asdict(limit.breaker),
        "per_key": limit.per_key,
    }


def _closed(turns: LimitTurns, at: Times) -> str | None:
    """When something may start again, if nothing may now, and why not."""
    room = turns.room
    if room.count:
        return None
    return f"{'when one ends' if room.again_us is None else at.full(room.again_us)}: {room.why}"


def _shown(turns: LimitTurns) -> dict[str, object]:
    """The document of `show`."""
    state = turns.limit.memory.breaker
    try:
        room = turns.room
        may_start: dict[str, object] = {
            "room": room.count,
            "why": room.why or None,
            "again_at": _instant(room.again_us),
        }
    except InvalidInput:  # `_document` tells it
        may_start = {"room": 0, "why": None, "again_at": None}
    return {
        **_document(turns.limit),
        "limit": turns.name,
        **may_start,
        "breaker_open_until": _instant(state.open_until_us or None),
        "breaker_trials": list(state.trials),
        "holders": [plain(each) for each in turns.holders],
        "waiting": [plain(each) for each in turns.waiting],
        "waiting_count": turns.waiting_count,
        "now": _instant(turns.now_us),
    }


def _instant(us: int | None) -> str | None:
    found = None if us is None else instant(us)
    return None if found is None else found.isoformat()
