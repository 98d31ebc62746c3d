"""`fencerow flows`: list, show, cancel, revive."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from fencerow.command import output
from fencerow.command.database import acting, working
from fencerow.command.documents import plain
from fencerow.command.groups import group_of
from fencerow.command.layout import Column
from fencerow.command.options import asked, limit_option, usual_options, utc_option
from fencerow.command.times import Times
from fencerow.core.client.base import ClientBase
from fencerow.core.model.ids import parse_id
from fencerow.db.text import amount
from fencerow.flows.client import FlowVerbs
from fencerow.flows.drawing import drawn
from fencerow.flows.looking import (
    FlowJobRecord,
    FlowRecord,
    count_flow_jobs,
    read_flow_callbacks,
    read_flow_jobs,
)
from fencerow.flows.reading import reading_flow

LIMIT = 50
LIMIT_MAX = 10_000
JOBS_SHOWN = 200
COLUMNS = (
    Column("flow"),
    Column("name", least=8),
    Column("state"),
    Column("ended"),
    Column("failed", rank=2),
    Column("submitted", rank=1),
)
JOBS = (
    Column("name", least=16),
    Column("state"),
    Column("waits", least=8, rank=1, folds=True),
    Column("job", rank=2),
)


@click.command("list")
@click.option("--live", is_flag=True, help="Only flows that have not ended.")
@limit_option(LIMIT, most=LIMIT_MAX)
@utc_option
@usual_options
@click.pass_context
def list_(context: click.Context, live: bool = False, limit: int = LIMIT) -> None:
    """List flows, the newest first."""
    with working(asked(context)) as engine:
        found = FlowVerbs(ClientBase(engine)).known(live=live, limit=limit)
    if asked(context).json:
        output.say_json([flow_document(each) for each in found])
        return
    output.table(
        COLUMNS,
        [_row(each, Times(each.now_us, asked(context).utc)) for each in found],
        none="there are no flows",
    )


flows = group_of(
    list_,
    "flows",
    "List, show, cancel and revive flows: jobs that wait for one another. Without a verb: list.",
)


@flows.command()
@click.argument("flow")
@limit_option(JOBS_SHOWN, most=20_000)
@utc_option
@usual_options
@click.pass_context
def show(context: click.Context, flow: str, limit: int = JOBS_SHOWN) -> None:
    """Show a flow: its jobs, each behind those it waits for, how they stand, and its callbacks."""
    flow_id = parse_id(flow)
    with working(asked(context)) as engine:
        client = ClientBase(engine)
        found = client.run(reading_flow(flow_id))
        counts = engine.run(count_flow_jobs(flow_id))
        jobs = engine.run(read_flow_jobs(flow_id, limit=limit))
        callbacks = engine.run(read_flow_callbacks(flow_id))
    if asked(context).json:
        output.say_json(
            {
                **flow_document(found),
                "counts": plain(counts),
                "graph": [job_document(each) for each in jobs],
                "callbacks": [plain(each) for each in callbacks],
            }
        )
        return
    at = Times(found.now_us, asked(context).utc)
    called = "cancel asked" if found.cancel_requested_at_us is not None else None
    output.facts(
        {
            "flow": found.id,
            "name": found.name,
            "state": found.state,
            "jobs": ", ".join(f"{count} {state}" for state, count in plain(counts).items() if count),
            "submitted": at.full(found.submitted_at_us),
            "by": found.submitted_by,
            called or "cancelled": at.full(found.cancel_requested_at_us),
            "ended": at.full(found.ended_at_us),
        }
    )
    output.say()
    output.table(JOBS, drawn(jobs), none="it has no jobs")
    if found.jobs > len(jobs):
        output.say(f"and {amount(found.jobs - len(jobs), 'job')} more: --limit")
    for each in callbacks:
        made = f"made {at.full(each.made_at_us)}" if each.made_at_us is not None else "not made yet"
        output.say(f"on {each.outcome}: {each.job} {each.id}, {each.trouble or made}")


@flows.command()
@click.argument("flow")
@click.option("--reason", metavar="TEXT", help="Why, for the timelines of its jobs.")
@usual_options
@click.pass_context
def cancel(context: click.Context, flow: str, reason: str | None = None) -> None:
    """Cancel all jobs of a flow that have not ended; those that run are asked to stop."""
    with working(asked(context)) as engine:
        handle = FlowVerbs(acting(engine, asked(context))).handle(flow)
        answer = handle.cancel(reason=reason)
    if asked(context).json:
        output.say_json({"id": handle.id, **plain(answer)})
    else:
        output.say(f"{amount(answer.cancelled, 'job')} cancelled, {answer.asked} asked to stop")


@flows.command()
@click.argument("flow")
@click.option("--reason", metavar="TEXT", help="Why, for the timelines of its jobs.")
@usual_options
@click.pass_context
def revive(context: click.Context, flow: str, reason: str | None = None) -> None:
    """Run all jobs of a flow again that failed or were cancelled, in the order in which they wait for one another."""
    with working(asked(context)) as engine:
        handle = FlowVerbs(acting(engine, asked(context))).handle(flow)
        answer = handle.revive(reason=reason)
    if asked(context).json:
        output.say_json({"id": handle.id, **plain(answer)})
        return
    left = f", {answer.left} left as others move them: ask again" if answer.left else ""
    output.say(f"{amount(answer.queued, 'job')} queued again, {answer.waiting} behind them{left}")


def flow_document(found: FlowRecord) -> dict[str, Any]:
    """What programs read of a flow."""
    return {**plain(found), "state": found.state}


def job_document(found: FlowJobRecord) -> dict[str, Any]:
    """What programs read of a job of a flow; without its result."""
    error = None if found.error_text is None else msgspec.json.decode(found.error_text)
    kept = {name: value for name, value in plain(found).items() if name not in ("error_text", "result_text")}
    return {**kept, "error": error}


def _row(each: FlowRecord, at: Times) -> tuple[object, ...]:
    done = f"{each.jobs - each.live} of {each.jobs}"
    return each.id, each.name, each.state, done, each.failed or None, at.when(each.submitted_at_us)
