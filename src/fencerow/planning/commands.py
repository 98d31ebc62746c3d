"""`fencerow plan`: what keys, slots and limits can do."""

from __future__ import annotations

from pathlib import Path

import click

from fencerow.command import output
from fencerow.command.database import working
from fencerow.command.options import asked, usual_options
from fencerow.core.errors import InvalidInput
from fencerow.db.errors import exits
from fencerow.planning.file import read_file
from fencerow.planning.measured import filled_in, measure
from fencerow.planning.plan import By
from fencerow.planning.played import picture, played_document, show_played
from fencerow.planning.reading import understood
from fencerow.planning.report import calculated
from fencerow.planning.shown import document, show
from fencerow.planning.simulating import simulated


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
@click.option(
    "--simulate",
    is_flag=True,
    help="Play it under virtual time, too, by our own rules (extra `plan`).",
)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed plays the same.")
@click.option(
    "--chart",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the simulation to this file, as SVG.",
)
@usual_options
@click.pass_context
def plan(
    context: click.Context,
    file: Path,
    by: str,
    measured: bool,
    simulate: bool,
    seed: int,
    chart: Path | None,
) -> int:
    """Say whether keys, slots and limits suffice for the jobs of FILE (TOML or JSON), for how many entities at most,
    and how long the backlog of an outage lasts.

    Exit code 1: something can never catch up, or an outage is not over in time."""
    written = read_file(file)
    if measured:
        with working(asked(context)) as engine:
            written = filled_in(written, engine.run(measure()))
    found = understood(written)
    report = calculated(found, By(by))
    simulation = simulated(found, seed) if simulate or chart is not None else None
    if chart is not None and simulation is not None:
        _write(chart, picture(found, simulation, seed))
    if asked(context).json:
        told = None if simulation is None else played_document(found, simulation, seed)
        output.say_json({**document(report), "simulation": told})
        return exits.OK if report.ok else exits.FAILED
    show(report)
    if simulation is not None:
        output.say()
        show_played(found, simulation, seed)
    return exits.OK if report.ok else exits.FAILED


def _write(chart: Path, text: str) -> None:
    try:
        chart.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(
            f"--chart: {chart} cannot be written: {error.strerror or type(error).__name__}",
            "an existing folder that this user may write to is expected",
            "name another file",
        ) from None
