"""`fencerow workers`: who is registered, and what they hold."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from fencerow.cli import output
from fencerow.cli.database import working
from fencerow.cli.options import app_option, asked, database_options, json_option
from fencerow.db.engine import Engine
from fencerow.model.job import WorkerRecord
from fencerow.model.state import WorkerState
from fencerow.store import store


@click.command()
@click.option(
    "--state", type=click.Choice([state.value for state in WorkerState]), help="Only those in this state."
)
@click.option(
    "--limit", type=click.IntRange(1, 1_000), default=100, show_default=True, help="At most so many."
)
@json_option
@database_options
@app_option
@click.pass_context
def workers(context: click.Context, state: str | None, limit: int) -> None:
    """List worker processes, the newest first: their lease, queues and slots."""
    with working(asked(context)) as engine:
        found = [
            _described(engine, each) for each in engine.run(store.list_workers(state=state, limit=limit))
        ]
    if asked(context).json:
        output.say_json(found)
        return
    output.table(
        ("id", "state", "name", "host", "pid", "running", "slots", "queues", "lease left", "started"),
        [_row(each) for each in found],
        none="no worker is registered",
    )


def _described(engine: Engine, worker: WorkerRecord) -> dict[str, Any]:
    running = len(engine.run(store.holdings(holder=worker.id)))
    return {**msgspec.to_builtins(worker), "running": running}


def _row(worker: dict[str, Any]) -> tuple[object, ...]:
    info = worker["info"] if isinstance(worker["info"], dict) else {}
    left_s = (worker["lease_until_us"] - worker["now_us"]) / 1e6
    return (
        worker["id"],
        worker["state"],
        worker["name"],
        worker["host"],
        worker["pid"],
        worker["running"],
        info.get("slots"),
        ",".join(map(str, info.get("queues") or [])),
        output.span(left_s) if worker["state"] == WorkerState.ALIVE else None,
        output.when(worker["registered_at_us"]),
    )
