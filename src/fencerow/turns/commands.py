"""`fencerow exclusive`: list, show."""

from __future__ import annotations

import click

from fencerow.command import output
from fencerow.command.completing import completed
from fencerow.command.database import working
from fencerow.command.documents import plain
from fencerow.command.groups import group_of
from fencerow.command.layout import Column
from fencerow.command.options import asked, full_option, limit_option, usual_options, utc_option
from fencerow.command.times import Times
from fencerow.core.client.base import ClientBase
from fencerow.db.engine import Engine
from fencerow.turns.client import LIMIT, LIMIT_MAX, WAITING, ExclusiveVerbs
from fencerow.turns.keys import COUNTED_MAX, ExclusiveKey, KeySummary, known_keys
from fencerow.turns.tables import say_turns
from fencerow.turns.telling import counted

KEYS = (
    Column("key", least=16),
    Column("turns"),
    Column("running", rank=1),
    Column("queued", rank=2),
    Column("waiting"),
    Column("held since"),
    Column("first is due"),
)


@click.command("list")
@limit_option(LIMIT, most=LIMIT_MAX)
@utc_option
@usual_options
@click.pass_context
def list_(context: click.Context, limit: int) -> None:
    """List exclusive keys with live jobs: who has waited longest comes first."""
    with working(asked(context)) as engine:
        found = ExclusiveVerbs(ClientBase(engine)).known(limit=limit)
    if asked(context).json:
        output.say_json([plain(each) for each in found.keys])
        return
    output.table(
        KEYS,
        [_key(each, Times(each.now_us, asked(context).utc)) for each in found.keys],
        none="no live job has an exclusive key",
    )
    if not found.is_whole:
        output.say()
        output.say("There are more keys than were looked at; `fencerow exclusive show KEY` shows any.")


exclusive = group_of(
    list_, "exclusive", "List and show exclusive keys: who has their turns, who waits. Without a verb: list."
)


def key_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Keys of which jobs are live, as far as a quick look finds them."""
    return completed(context, incomplete, _keys)


def _keys(engine: Engine) -> list[str]:
    return [each.key for each in engine.run(known_keys(limit=LIMIT, look=COUNTED_MAX)).keys]


@exclusive.command()
@click.argument("key", shell_complete=key_names)
@click.option(
    "--waiting",
    type=click.IntRange(1, LIMIT_MAX),
    default=WAITING,
    show_default=True,
    help="Show so many of those that wait.",
)
@full_option
@utc_option
@usual_options
@click.pass_context
def show(context: click.Context, key: str, waiting: int) -> None:
    """Show an exclusive key: the jobs that have its turns, and those that wait, the next one first."""
    with working(asked(context)) as engine:
        found = ExclusiveVerbs(ClientBase(engine)).get(key, waiting=waiting)
    if asked(context).json:
        output.say_json(_document(found))
        return
    at = Times(found.now_us, asked(context).utc)
    output.facts(
        {
            "key": found.key,
            "turns": f"{len(found.holders)} of {found.at_once} taken",
            "waiting": counted(found.waiting_count),
        }
    )
    if not found.holders and not found.waiting:
        output.say()
        output.say("No live job has this key.")
    say_turns(found.holders, found.waiting, at, full=asked(context).full, with_strict=True)


def _key(found: KeySummary, at: Times) -> tuple[object, ...]:
    return (
        found.key,
        f"{found.running + found.queued} of {found.at_once}",
        found.running or None,
        found.queued or None,
        counted(found.waiting) if found.waiting else None,
        at.when(found.held_since_us),
        at.when(found.waits_since_us),
    )


def _document(found: ExclusiveKey) -> dict[str, object]:
    return {**plain(found), "at_once": found.at_once}
