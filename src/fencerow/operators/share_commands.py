"""`fencerow shares`: list, set."""

from __future__ import annotations

from typing import Any

import click

from fencerow.command import output
from fencerow.command.completing import queue_names
from fencerow.command.database import acting, working
from fencerow.command.groups import group_of
from fencerow.command.layout import Column
from fencerow.command.options import app_option, asked, database_options, json_option, utc_option
from fencerow.command.times import Times, iso
from fencerow.core.client.base import ClientBase
from fencerow.db.errors import exits
from fencerow.operators.known_queues import nobody_knows
from fencerow.operators.share_verbs import ShareVerbs
from fencerow.turns.shares import ShareRecord

NOBODYS = "(no share)"
COLUMNS = (
    Column("queue", least=8),
    Column("share", least=12),
    Column("weight"),
    Column("queued"),
    Column("running"),
    Column("oldest due"),
    Column("set", rank=2),
)


@click.command("list")
@click.option("--queue", metavar="QUEUE", shell_complete=queue_names, help="Of this queue only.")
@utc_option
@json_option
@database_options
@app_option
@click.pass_context
def list_(context: click.Context, queue: str | None = None) -> None:
    """List the shares of queues: their weights, and how many jobs they have."""
    with working(asked(context)) as engine:
        found = ShareVerbs(ClientBase(engine)).known(queue)
    if asked(context).json:
        output.say_json([_document(each) for each in found])
        return
    output.table(
        COLUMNS,
        [_row(each, Times(each.now_us, asked(context).utc)) for each in found],
        none="no job names a share, and no share has a weight",
    )


shares = group_of(list_, "shares", "List the shares of queues and set their weights. Without a verb: list.")


@shares.command("set")
@click.argument("queue", shell_complete=queue_names)
@click.argument("share")
@click.option("--weight", type=int, required=True, metavar="N", help="Jobs in one turn, 1 to 1000.")
@json_option
@database_options
@app_option
@click.pass_context
def set_(context: click.Context, queue: str, share: str, weight: int) -> int:
    """Set how many jobs a share starts in one turn. An empty SHARE stands for the jobs without one."""
    with working(asked(context)) as engine:
        verbs = ShareVerbs(acting(engine, asked(context)))
        changed = verbs.weigh(queue, share, weight)
        unknown = ClientBase(engine).run(nobody_knows(queue))
    if asked(context).json:
        output.say_json({"queue": queue, "share": share, "weight": weight, "changed": changed})
    else:
        name = f"{queue}: {share or NOBODYS}"
        output.say_text(f"{name} has weight {weight}" if changed else f"{name} had weight {weight} already")
    if unknown:
        output.warn(unknown)
    return exits.OK


def _row(found: ShareRecord, at: Times) -> tuple[Any, ...]:
    set_by = f" by {found.set_by}" if found.set_by else ""
    return (
        found.queue,
        found.share or NOBODYS,
        found.weight,
        found.queued or None,
        found.running or None,
        None if found.first_us is None else at.when(found.first_us),
        None if found.set_at_us is None else f"{at.when(found.set_at_us)}{set_by}",
    )


def _document(found: ShareRecord) -> dict[str, object]:
    return {
        "queue": found.queue,
        "share": found.share,
        "weight": found.weight,
        "queued": found.queued,
        "running": found.running,
        "first_due": iso(found.first_us),
        "set_at": iso(found.set_at_us),
        "set_by": found.set_by,
    }
