"""`fencerow jobs timeline`: all that happened to one job, in one order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import msgspec

from fencerow.client import Client
from fencerow.command import output
from fencerow.command.database import times, working
from fencerow.command.documents import instants
from fencerow.command.layout import Column
from fencerow.command.options import asked, usual_options, utc_option
from fencerow.command.times import Times
from fencerow.core.model.job import Happening
from fencerow.db.run import Procedure, ask
from fencerow.db.text import amount
from fencerow.operators.looking import LogLine
from fencerow.operators.prefixes import job_meant, parse_prefix
from fencerow.output.storing import AttemptPart, parts
from fencerow.steps.model import Kind, Step

COLUMNS = (
    Column("when"),
    Column("attempt", rank=1),
    Column("what", least=10),
    Column("detail", least=20, folds=True),
)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened. `attempt` is None where it was of no attempt."""

    at_us: int
    attempt: int | None = None
    kind: str
    detail: str = ""


@click.command()
@click.argument("job_id", metavar="ID")
@click.option("--full", is_flag=True, help="With its log, steps, waits, signals and output.")
@utc_option
@usual_options
@click.pass_context
def timeline(context: click.Context, job_id: str, *, full: bool = False) -> None:
    """Show what happened to a job, the oldest first: its moves, and with --full all else that is kept of its run.

    Each line is of the time at which it was stored. What steps returned and what signals brought is not shown.
    """
    meant = parse_prefix(job_id)
    with working(asked(context)) as engine:
        client = Client(engine)
        wanted = client.run(job_meant(meant))
        client.get(wanted)
        moves = [_move(each) for each in client.timeline(wanted)]
        lines = moves + (client.run(_rest(wanted)) if full else [])
        at = times(engine, asked(context))
    lines.sort(key=lambda line: line.at_us)  # what has one instant keeps its order: moves first
    if asked(context).json:
        output.say_json([instants(msgspec.structs.asdict(each).items()) for each in lines])
    else:
        output.table(COLUMNS, [_row(each, at) for each in lines])


def _rest(job_id: str) -> Procedure[list[Line]]:
    """What is kept of its run beside its moves."""
    from fencerow.operators.looking import logs
    from fencerow.steps.memory import steps_of, waiting_for
    from fencerow.steps.signals import signals_of

    found = [_said(each) for each in (yield from ask(logs(job_id)))]
    found += [_step(each) for each in (yield from ask(steps_of(job_id)))]
    for sent in (yield from ask(signals_of(job_id))):
        taken = "nobody has taken it" if sent.taken_as is None else f"taken by {sent.taken_as}"
        by = f" from {sent.sent_by}" if sent.sent_by else ""
        found.append(Line(at_us=sent.sent_at_us, kind="signal came", detail=f"{sent.name}{by}, {taken}"))
    for wait in (yield from ask(waiting_for(job_id))):
        what = "a time" if wait.signal is None else f"the signal {wait.signal}"
        found.append(Line(at_us=wait.since_us, kind="waits", detail=f"{wait.wait}, for {what}"))
    for part in (yield from ask(parts(job_id))):
        found += _emitted(part)
    return found


def _move(each: Happening) -> Line:
    said = [f"by {each.actor}"] if each.actor else []
    if isinstance(each.detail, dict):
        said += [
            f"{name} {value}" for name, value in each.detail.items() if not isinstance(value, dict | list)
        ]
    return Line(at_us=each.at_us, attempt=each.attempt, kind=each.kind, detail=", ".join(said))


def _said(each: LogLine) -> Line:
    return Line(at_us=each.at_us, attempt=each.attempt, kind=f"log {each.level}", detail=each.message)


def _step(each: Step) -> Line:
    took = "" if each.took_s is None else f", took {each.took_s:.3f} s"
    kind = {Kind.STEP: "step done", Kind.SLEEP: "slept", Kind.SIGNAL: "signal taken", Kind.PATCH: "patched"}
    return Line(at_us=each.at_us, attempt=each.attempt, kind=kind[each.kind], detail=f"{each.name}{took}")


def _emitted(part: AttemptPart) -> Iterator[Line]:
    how_much = f"{amount(part.chunks, 'chunk')}, {amount(part.bytes, 'byte')}"
    yield Line(at_us=part.first_us, attempt=part.attempt, kind="output begins")
    yield Line(at_us=part.last_us, attempt=part.attempt, kind="output so far", detail=how_much)


def _row(line: Line, at: Times) -> tuple[Any, ...]:
    return at.fine(line.at_us), line.attempt, line.kind, line.detail
