"""`fencerow backfills`: how far they are, paused and resumed."""

from __future__ import annotations

from itertools import groupby

import click

from fencerow.command import output
from fencerow.command.app_loading import load_app
from fencerow.command.database import prepared, working
from fencerow.command.layout import Column
from fencerow.command.options import app_option, asked, database_options, json_option
from fencerow.command.times import span
from fencerow.core.errors import exits
from fencerow.migrations.backfills.backfill import pause as pause_backfill
from fencerow.migrations.backfills.backfill import resume as resume_backfill
from fencerow.migrations.backfills.backfill import unknown
from fencerow.migrations.backfills.operations import lanes_of
from fencerow.migrations.backfills.status import BackfillStatus


@click.group(invoke_without_command=True)
@json_option
@database_options
@app_option
@click.pass_context
def backfills(context: click.Context) -> None:
    """List, pause and resume backfills. Without a verb: list."""
    if context.invoked_subcommand is None:
        _list(context)


@backfills.command("list")
@json_option
@database_options
@app_option
@click.pass_context
def list_(context: click.Context) -> None:
    """List backfills: how far they are, how fast, and the ranges that failed."""
    _list(context)


@backfills.command()
@click.argument("name")
@json_option
@database_options
@app_option
@click.pass_context
def pause(context: click.Context, name: str) -> int:
    """Stop a backfill after the ranges that are under way. It stays paused across restarts."""
    with working(asked(context)) as engine:
        lanes = pause_backfill(engine, name)
        if not lanes and not engine.run(lanes_of(name)):
            raise unknown(name)
    if asked(context).json:
        output.say_json({"backfill": name, "paused": True, "changed": bool(lanes)})
    else:
        output.say(f"{name} is paused" if lanes else f"{name} was not running")
    return exits.OK


@backfills.command()
@click.argument("name")
@json_option
@database_options
@app_option
@click.pass_context
def resume(context: click.Context, name: str) -> int:
    """Go on with the ranges of a backfill that are not done. -A: the application that declares it."""
    with prepared(load_app(asked(context).app_name(), url=asked(context).url), asked(context)) as app:
        app.client.make_ready()
        lanes = resume_backfill(app, name)
    if asked(context).json:
        output.say_json({"backfill": name, "paused": False, "changed": bool(lanes)})
    else:
        output.say(f"{name} goes on" if lanes else f"{name} is done")
    return exits.OK


def _list(context: click.Context) -> None:
    with working(asked(context)) as engine:
        lanes = engine.run(lanes_of(None))
    found = [BackfillStatus.of(list(group)) for _, group in groupby(lanes, key=lambda lane: lane.name)]
    if asked(context).json:
        output.say_json([each.as_json() for each in found])
        return
    output.table(
        (
            Column("backfill", least=12),
            "state",
            "done",
            "of",
            "percent",
            Column("rows/s", rank=1),
            "left",
            Column("failed", least=16, folds=True),
        ),
        [_line(each) for each in found],
        none="no backfill was started",
    )


def _line(found: BackfillStatus) -> tuple[object, ...]:
    failed = ", ".join(f"{each.first} to {each.last}: {each.error}" for each in found.failed)
    left = None if found.eta_s is None else span(found.eta_s)
    return (
        found.name,
        found.state,
        found.rows_done,
        found.rows_planned,
        found.percent,
        found.rows_per_s,
        left,
        failed,
    )
