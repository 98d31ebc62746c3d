"""`fencerow mutexes`: list, show, release."""

from __future__ import annotations

import click

from fencerow.command import output
from fencerow.command.database import acting, working
from fencerow.command.documents import plain
from fencerow.command.groups import group_of
from fencerow.command.layout import Column
from fencerow.command.options import asked, limit_option, usual_options, utc_option
from fencerow.command.times import Times, span
from fencerow.core.client.base import ClientBase
from fencerow.db.errors import exits
from fencerow.guards.mutex.client import Mutexes
from fencerow.guards.mutex.mutexes import MutexRecord

COLUMNS = (
    Column("key", least=16),
    Column("state"),
    Column("since"),
    Column("lease ends"),
    Column("token"),
    Column("job", least=8, rank=1),
    Column("purpose", least=12, rank=2),
    Column("host", least=8, rank=3),
    Column("process", rank=4),
    Column("job id", rank=5),
)


@click.command("list")
@limit_option(100)
@utc_option
@usual_options
@click.pass_context
def list_(context: click.Context, limit: int) -> None:
    """List the mutexes that are held, the longest first."""
    with working(asked(context)) as engine:
        found = Mutexes(ClientBase(engine)).held(limit=limit)
    if asked(context).json:
        output.say_json([_document(each) for each in found])
        return
    output.table(
        COLUMNS,
        [_row(each, Times(each.now_us, asked(context).utc)) for each in found],
        none="no mutex is held",
    )


mutexes = group_of(list_, "mutexes", "List, show and release mutexes. Without a verb: list.")


@mutexes.command()
@click.argument("key")
@utc_option
@usual_options
@click.pass_context
def show(context: click.Context, key: str) -> None:
    """Show a mutex: who holds it, or held it last."""
    with working(asked(context)) as engine:
        found = Mutexes(ClientBase(engine)).get(key)
    if asked(context).json:
        output.say_json(_document(found))
        return
    at = Times(found.now_us, asked(context).utc)
    output.facts(
        {
            "key": found.key,
            "state": _state(found),
            "token": found.token,
            "purpose": found.purpose,
            "job": f"{found.job_name} {found.job_id} attempt {found.attempt}" if found.job_id else None,
            "process": f"{found.pid} on {found.host}",
            "since": at.full(found.since_us),
            "until": at.full(found.until_us),
            "stale after": span(found.stale_s),
            "last freed": _freed(found, at),
        }
    )


@mutexes.command()
@click.argument("key")
@click.option("--token", type=int, help="Only if the holder has this token.")
@click.option("--reason", metavar="TEXT", help="Why; shown by `mutexes show`.")
@usual_options
@click.pass_context
def release(context: click.Context, key: str, token: int | None, reason: str | None) -> int:
    """Take a mutex from its holder. The holder learns of it at its next renewal, and may still be at work
    until then."""
    with working(asked(context)) as engine:
        known = Mutexes(acting(engine, asked(context)))
        found = known.get(key)
        wanted = found.token if token is None else token
        done = known.free(key, wanted, reason=reason)
    if asked(context).json:
        output.say_json({"key": key, "token": wanted, "released": done})
    elif done:
        output.say_text(
            f"{key} is free; it was held by process {found.pid} on {found.host} with token {wanted}"
        )
    else:
        output.say(f"{key} is not held with token {wanted}; nothing was changed")
    return exits.OK if done else exits.FAILED


def _row(found: MutexRecord, at: Times) -> tuple[object, ...]:
    return (
        found.key,
        _state(found),
        at.when(found.since_us),
        at.when(found.until_us),
        found.token,
        found.job_name,
        found.purpose,
        found.host,
        str(found.pid),
        found.job_id,
    )


def _document(found: MutexRecord) -> dict[str, object]:
    return {**plain(found), "state": _state(found)}


def _state(found: MutexRecord) -> str:
    if not found.is_held:
        return "free"
    return "stale" if found.is_stale else "held"


def _freed(found: MutexRecord, at: Times) -> str | None:
    if found.freed_at_us is None:
        return None
    by = f" by {found.freed_by}" if found.freed_by else ""
    return f"{at.full(found.freed_at_us)}{by}" + (f": {found.freed_reason}" if found.freed_reason else "")
