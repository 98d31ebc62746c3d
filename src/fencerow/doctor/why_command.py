"""`fencerow why`: prints what `fencerow.doctor.why` finds."""

from __future__ import annotations

from typing import Any

import click

from fencerow.command import output
from fencerow.command.database import working
from fencerow.command.documents import instants, plain
from fencerow.command.layout import Column
from fencerow.command.options import asked, usual_options
from fencerow.core.client.base import ClientBase
from fencerow.db.errors import exits
from fencerow.doctor.conditions import Condition
from fencerow.doctor.why import why as examine
from fencerow.operators.prefixes import job_meant, parse_prefix

ANSWERS = {True: "yes", False: "no", None: "-"}
COLUMNS = (Column("condition"), Column("holds"), Column("found", least=30, folds=True))


@click.command()
@click.argument("job_id", metavar="ID")
@usual_options
@click.pass_context
def why(context: click.Context, job_id: str) -> int:
    """Say why a job is not running: each condition of its claim, one by one."""
    meant = parse_prefix(job_id)
    with working(asked(context)) as engine:
        wanted = ClientBase(engine).run(job_meant(meant))
        answer = engine.run(examine(wanted))
    if asked(context).json:
        output.say_json({**plain(answer), "conditions": [_document(each) for each in answer.conditions]})
        return exits.OK
    # What keeps the job stands first, and the answer last, beside the prompt: a window of 24 lines shows the end.
    output.table(
        COLUMNS,
        [
            (each.name, ANSWERS[each.holds], each.found)
            for each in sorted(answer.conditions, key=lambda each: each.holds is not False)
        ],
    )
    output.say()
    output.say_text(f"{answer.id} is {answer.state.value}: {answer.summary}")
    return exits.OK


def _document(found: Condition) -> dict[str, Any]:
    return {**plain(found), "facts": instants(found.facts.items())}
