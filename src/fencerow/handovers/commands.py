"""`fencerow handovers`: list, show, confirm."""

from __future__ import annotations

import click

from fencerow.command import output
from fencerow.command.database import acting, working
from fencerow.command.documents import plain
from fencerow.command.groups import group_of
from fencerow.command.layout import Column
from fencerow.command.options import asked, full_option, limit_option, usual_options, utc_option
from fencerow.command.times import Times
from fencerow.core.client.base import ClientBase
from fencerow.db.engine import Engine
from fencerow.handovers.client import Receiver
from fencerow.handovers.errors import HandoverNotFound
from fencerow.handovers.looking import PlacedHandover, handover_document, listed, placed_handover
from fencerow.operators.prefixes import job_meant, parse_prefix

LIMIT = 50
LIMIT_MAX = 10_000
COLUMNS = (
    Column("job", short=True),
    Column("name", least=8, rank=3),
    Column("receiver", least=8, rank=1),
    Column("key", least=8),
    Column("ended", rank=2),
    Column("state", rank=2),
    Column("now", least=14, folds=True),
)


@click.command("list")
@click.option("--receiver", metavar="NAME", help="Only those of this receiver.")
@click.option("--key", metavar="KEY", help="Only those of this key.")
@limit_option(LIMIT, most=LIMIT_MAX)
@full_option
@utc_option
@usual_options
@click.pass_context
def list_(
    context: click.Context, receiver: str | None = None, key: str | None = None, limit: int = LIMIT
) -> None:
    """List handovers that nobody has confirmed, in the order of the submits."""
    with working(asked(context)) as engine:
        found = engine.run(listed(receiver=receiver, key=key, limit=limit))
    if asked(context).json:
        output.say_json([handover_document(each) for each in found])
        return
    output.table(
        COLUMNS,
        [_row(each, Times(each.now_us, asked(context).utc)) for each in found],
        none="every handover is confirmed",
        full=asked(context).full,
    )


handovers = group_of(
    list_,
    "handovers",
    "List, show and confirm handovers: the ends of jobs that a receiver is to have. Without a verb: list.",
)


@handovers.command()
@click.argument("job")
@utc_option
@usual_options
@click.pass_context
def show(context: click.Context, job: str) -> None:
    """Show the handover of a job: whose it is, who stands before it, who has it, since when it is confirmed."""
    with working(asked(context)) as engine:
        found = _found(engine, job)
    if asked(context).json:
        output.say_json(handover_document(found))
        return
    at, each = Times(found.now_us, asked(context).utc), found.handover
    output.facts(
        {
            "job": each.job_id,
            "name": each.name,
            "receiver": each.receiver,
            "key": each.key,
            "now": found.standing,
            "lined up": at.full(each.lined_at_us),
            "hold": f"{each.hold_s:g} s",
            "ended": None if each.state is None else f"{each.state.value} {at.full(each.ended_at_us)}",
            "attempt": each.attempt,
            "behind": found.behind,
            "held until": at.full(each.held_until_us) if found.behind else None,
            "taken": f"{at.full(each.taken_at_us)} by {each.taken_by}" if each.taken_at_us else None,
            "takes": each.token or None,
            "confirmed": _with(at.full(each.confirmed_at_us), each.confirmed_by),
            "result": each.result_text,
            "error": each.error_text,
        }
    )


@handovers.command()
@click.argument("job")
@usual_options
@click.pass_context
def confirm(context: click.Context, job: str) -> None:
    """Confirm the end of a job in its receiver's place: it is not handed over again, and the next of its key may be."""
    with working(asked(context)) as engine:
        found = _found(engine, job)
        receiver = Receiver(acting(engine, asked(context)), found.handover.receiver)
        answer = receiver.confirm(found.handover.job_id)
    if asked(context).json:
        output.say_json(plain(answer))
    elif answer.replay:
        output.say(f"job {answer.job_id} was confirmed before")
    else:
        output.say(f"job {answer.job_id} is confirmed")


def _found(engine: Engine, job: str) -> PlacedHandover:
    meant = parse_prefix(job)
    # Its job may be gone already, so a whole id is asked for as it is.
    job_id = meant.first if meant.first == meant.last else ClientBase(engine).run(job_meant(meant))
    found = engine.run(placed_handover(job_id))
    if found is None:
        raise HandoverNotFound(
            f"there is no handover of job {job_id}",
            "the id is unknown, or the job was submitted without handover=",
            "`fencerow handovers list` shows those that are not confirmed",
        )
    return found


def _row(found: PlacedHandover, at: Times) -> tuple[object, ...]:
    each = found.handover
    return (
        each.job_id,
        each.name,
        each.receiver,
        each.key,
        at.when(each.ended_at_us),
        None if each.state is None else each.state.value,
        found.standing,
    )


def _with(moment: str | None, who: str | None) -> str | None:
    return moment if moment is None or who is None else f"{moment} by {who}"
