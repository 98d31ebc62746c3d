"""`fencerow plan`: what keys, slots and limits can do."""

from __future__ import annotations

from pathlib import Path

import click

from fencerow.command import output
from fencerow.command.database import working
from fencerow.command.options import asked, usual_options
from fencerow.core.errors import exits
from fencerow.planning.file import read_file
from fencerow.planning.measured import filled_in, measure
from fencerow.planning.plan import By
from fencerow.planning.reading import understood
from fencerow.planning.report import calculated
from fencerow.planning.shown import document, show


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--by",
    type=click.Choice([each.value for each in By]),
    default=By.P95.value,
    show_default=True,
    help="Count the mean of durations, or, to be careful, their p95.",
)
@click.option(
    "--measured",
    is_flag=True,
    help="Take durations and rates that FILE leaves out from jobs of the database that have ended.",
)
@usual_options
@click.pass_context
def plan(context: click.Context, file: Path, by: str, measured: bool) -> int:
    """Say whether keys, slots and limits suffice for the jobs of FILE (TOML or JSON), for how many entities at most,
    and how long the backlog of an outage lasts.

    Exit code 1: something can never catch up, or an outage is not over in time."""
    written = read_file(file)
    if measured:
        with working(asked(context)) as engine:
            written = filled_in(written, engine.run(measure()))
    report = calculated(understood(written), By(by))
    if asked(context).json:
        output.say_json(document(report))
    else:
        show(report)
    return exits.OK if report.ok else exits.FAILED
