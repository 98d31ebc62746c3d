"""`fencerow saga`: what undoes the steps of a job, and how far that is."""

from __future__ import annotations

import click

from fencerow.command import output
from fencerow.command.database import working
from fencerow.command.documents import plain
from fencerow.command.layout import Column
from fencerow.command.options import asked, usual_options, utc_option
from fencerow.command.times import Times
from fencerow.core.client.base import ClientBase
from fencerow.core.client.refs import reading
from fencerow.core.store.read import clock
from fencerow.db.run import Procedure, ask
from fencerow.operators.prefixes import job_meant, parse_prefix
from fencerow.saga.storing import SagaRecord, UndoStep, sagas_of, undo_steps
from fencerow.steps.memory import steps_of

STEPS = (
    Column("undoes", least=12, folds=True),
    Column("by", least=8),
    Column("undone"),
)
Shown = tuple[list[tuple[SagaRecord, list[UndoStep], dict[str, int]]], int]


@click.command("saga")
@click.argument("job")
@utc_option
@usual_options
@click.pass_context
def saga(context: click.Context, job: str) -> None:
    """Show what undoes the steps of a job if it ends without success, and what is undone; also by the compensation."""
    with working(asked(context)) as engine:
        found, now_us = ClientBase(engine).run(_looked(job))
    if asked(context).json:
        output.say_json([_document(*each) for each in found])
        return
    at = Times(now_us, asked(context).utc)
    if not found:
        output.say("no step of it can be undone")
    for record, steps, undone in found:
        output.facts(
            {
                "job": record.job_id,
                "compensation": record.undo_id,
                "state": record.state or "not needed so far",
                "since": at.full(record.ended_at_us),
                "revived": "the job began anew since" if record.anew else None,
            }
        )
        output.say()
        rows = [(each.name, each.undo, at.when(undone.get(each.name))) for each in steps]
        output.table(STEPS, rows, none="it undoes no step")


def _looked(job: str) -> Procedure[Shown]:
    job_id = yield from job_meant(parse_prefix(job))
    sagas, found = (yield from ask(sagas_of(job_id))), []
    if not sagas:
        yield from reading(job_id)  # a job that is nowhere is no job whose steps stay done
    for each in sagas:
        steps = yield from ask(undo_steps(each.undo_id))
        undone = {step.name: step.at_us for step in (yield from ask(steps_of(each.undo_id)))}
        found.append((each, steps, undone))
    return found, (yield from ask(clock()))


def _document(record: SagaRecord, steps: list[UndoStep], undone: dict[str, int]) -> dict[str, object]:
    kept = [{"name": each.name, "undo": each.undo, "undone": each.name in undone} for each in steps]
    return {**plain(record), "steps": kept}
