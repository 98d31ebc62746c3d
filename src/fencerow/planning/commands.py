"""`fencerow plan`: what keys, slots and limits can do."""

from __future__ import annotations

from pathlib import Path

import click

from fencerow.command import output
from fencerow.command.options import asked, json_option
from fencerow.core.errors import exits
from fencerow.planning.file import read_file
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
@json_option
@click.pass_context
def plan(context: click.Context, file: Path, by: str) -> int:
    """Say whether keys, slots and limits suffice for the jobs of FILE (TOML or JSON), for how many entities at most,
    and how long the backlog of an outage lasts.

    Exit code 1: something can never catch up, or an outage is not over in time."""
    report = calculated(understood(read_file(file)), By(by))
    if asked(context).json:
        output.say_json(document(report))
    else:
        show(report)
    return exits.OK if report.ok else exits.FAILED
