"""`fencerow backfills`: how far they are, paused, resumed and waited for."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from itertools import groupby

import click

from fencerow.command import output
from fencerow.command.app_loading import load_app
from fencerow.command.database import in_person, prepared, working
from fencerow.command.groups import group_of
from fencerow.command.layout import Column
from fencerow.command.options import asked, usual_options
from fencerow.command.progress import progress
from fencerow.command.times import span
from fencerow.db.engine import Engine
from fencerow.db.errors import exits
from fencerow.migrations.backfills.backfill import pause as pause_backfill
from fencerow.migrations.backfills.backfill import resume as resume_backfill
from fencerow.migrations.backfills.backfill import unknown
from fencerow.migrations.backfills.operations import lanes_of
from fencerow.migrations.backfills.status import BackfillStatus

LOOK_S = 1.0


@click.command("list")
@usual_options
@click.pass_context
def list_(context: click.Context) -> None:
    """List backfills: how far they are, how fast, and the ranges that failed."""
    with working(asked(context)) as engine:
        lanes = engine.run(lanes_of(None))
    found = [BackfillStatus.of(list(group)) for _, group in groupby(lanes, key=lambda lane: lane.name)]
    if asked(context).json:
        output.say_json([each.as_json() for each in found])
        return
    _table(found)


backfills = group_of(
    list_, "backfills", "List, pause and resume backfills, and wait for them. Without a verb: list."
)


@backfills.command()
@click.argument("name")
@usual_options
@click.pass_context
def pause(context: click.Context, name: str) -> int:
    """Stop a backfill after the ranges that are under way. It stays paused across restarts."""
    with working(asked(context)) as engine:
        lanes = pause_backfill(in_person(engine, asked(context)), name)
        if not lanes and not engine.run(lanes_of(name)):
            raise unknown(name)
    if asked(context).json:
        output.say_json({"backfill": name, "paused": True, "changed": bool(lanes)})
    else:
        output.say(f"{name} is paused" if lanes else f"{name} was not running")
    return exits.OK


@backfills.command()
@click.argument("name")
@usual_options
@click.pass_context
def resume(context: click.Context, name: str) -> int:
    """Go on with the ranges of a backfill that are not done. -A: the application that declares it."""
    with prepared(load_app(asked(context).app_name(), url=asked(context).url), asked(context)) as app:
        app.client.make_ready()
        lanes = resume_backfill(app, in_person(app.engine, asked(context)), name)
    if asked(context).json:
        output.say_json({"backfill": name, "paused": False, "changed": bool(lanes)})
    else:
        output.say(f"{name} goes on" if lanes else f"{name} is done")
    return exits.OK


@backfills.command()
@click.argument("name")
@click.option("--wait-max", "wait_s", type=float, metavar="SECONDS", help="Wait no longer than this.")
@usual_options
@click.pass_context
def wait(context: click.Context, name: str, wait_s: float | None) -> int:
    """Wait until a backfill is done, and show how far it is. Workers do the work.

    Exit code 1 means that it stopped at a range that failed, or is paused; 6 that --wait-max is over and it goes on.
    """
    deadline = math.inf if wait_s is None else time.monotonic() + wait_s
    with working(asked(context)) as engine:
        found = _status(engine, name)
        with progress(name, found.rows_planned, json=asked(context).json) as bar:
            while found.state == "running" and time.monotonic() < deadline:
                bar.to(min(found.rows_done, found.rows_planned), _rate(found))
                time.sleep(max(0.0, min(LOOK_S, deadline - time.monotonic())))
                found = _status(engine, name)
            bar.to(found.rows_planned if found.state == "done" else min(found.rows_done, found.rows_planned))
    if asked(context).json:
        output.say_json(found.as_json())
    else:
        _table([found])
    if found.state == "running":
        return exits.TIMED_OUT
    return exits.OK if found.state == "done" else exits.FAILED


def _status(engine: Engine, name: str) -> BackfillStatus:
    lanes = engine.run(lanes_of(name))
    if not lanes:
        raise unknown(name)
    return BackfillStatus.of(lanes)


def _rate(found: BackfillStatus) -> str | None:
    return None if found.rows_per_s is None else f"{found.rows_per_s:g} rows/s"


def _table(found: Sequence[BackfillStatus]) -> None:
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
