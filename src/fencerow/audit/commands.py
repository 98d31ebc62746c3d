"""`fencerow audit`: who changed what by hand."""

from __future__ import annotations

from typing import Final

import click
import msgspec

from fencerow.audit.client import LIMIT_MAX, AuditVerbs
from fencerow.audit.entry import Entry
from fencerow.command import output
from fencerow.command.database import times, working
from fencerow.command.documents import plain
from fencerow.command.layout import Column
from fencerow.command.options import asked, limit_option, usual_options, utc_option
from fencerow.command.times import Times, told_instant
from fencerow.core.client.base import ClientBase
from fencerow.db.text import amount

COLUMNS: Final = (
    Column("when"),
    Column("who", least=10),
    Column("by", rank=2),
    Column("what", least=10),
    Column("detail", least=12, folds=True, rank=1),
)


@click.command()
@click.option("--target", metavar="NAME", help="Only changes of the job, queue or limit of this id or name.")
@click.option("--kind", metavar="KIND", help="Only changes of jobs, or of queues: job, queue, limit, ...")
@click.option("--person", metavar="NAME", help="Only what this person changed.")
@click.option("--since", metavar="TIME", help="Only since then: 2026-11-21T08:00:00+01:00")
@click.option("--before", type=click.IntRange(min=1), metavar="ID", help="The page before this entry.")
@limit_option(100, most=LIMIT_MAX)
@utc_option
@usual_options
@click.pass_context
def audit(
    context: click.Context,
    target: str | None,
    kind: str | None,
    person: str | None,
    since: str | None,
    before: int | None,
    limit: int,
) -> None:
    """Show what people changed by hand, the newest first: by command, over HTTP, or in the dashboard."""
    moment = None if since is None else told_instant("--since", since)
    with working(asked(context)) as engine:
        found = AuditVerbs(ClientBase(engine)).entries(
            target=target, kind=kind, person=person, since=moment, before=before, limit=limit
        )
        at = times(engine, asked(context))
    if asked(context).json:
        output.say_json([plain(each) for each in found])
        return
    output.table(COLUMNS, [_row(each, at) for each in found], none="nobody changed anything by hand")
    if len(found) == limit:
        output.say(f"(there may be more: --before {found[-1].id} shows the page before)")


def _row(entry: Entry, at: Times) -> tuple[object, ...]:
    what = entry.targets[0] if len(entry.targets) == 1 else amount(len(entry.targets), entry.kind)
    return (
        at.when(entry.at_us),
        entry.person,
        entry.via,
        f"{entry.kind} {what} {entry.verb}" if len(entry.targets) == 1 else f"{what} {entry.verb}",
        ", ".join(f"{name}: {_said(value)}" for name, value in entry.detail.items()),
    )


def _said(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
