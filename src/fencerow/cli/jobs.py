"""`fencerow jobs`: list, show, change, revive, cancel, delete."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import click

from fencerow.cli.bulk import Bulk, bulk_options
from fencerow.cli.changing import change_options, wanted_change
from fencerow.cli.filters import filter_options, made, page, placed
from fencerow.cli.show import show_job
from fencerow.client import Client
from fencerow.command import output
from fencerow.command.database import times, working
from fencerow.command.documents import instants, plain
from fencerow.command.layout import Column
from fencerow.command.options import app_option, asked, database_options, json_option, utc_option
from fencerow.command.times import Times
from fencerow.core.model.ids import parse_prefix
from fencerow.core.model.job import Happening, JobRecord
from fencerow.core.model.state import FINAL, LIVE, State
from fencerow.operators.looking import listed
from fencerow.operators.many import CancelMany, ChangeMany, DeleteMany, ReviveMany
from fencerow.operators.prefixes import job_meant

F = TypeVar("F", bound=Callable[..., Any])

COLUMNS = (
    Column("id"),
    Column("state"),
    Column("when"),
    Column("job", least=12),
    Column("queue", least=8, rank=2),
    Column("note", least=10, rank=1),
    Column("attempt", rank=3),
    Column("submitted", rank=4),
)


def list_options(command: F) -> F:
    """Which jobs a list shows, and how."""
    for option in (
        filter_options,
        click.option(
            "--limit",
            type=click.IntRange(1, 10_000),
            default=50,
            show_default=True,
            help="Show at most so many.",
        ),
        json_option,
        utc_option,
        database_options,
        app_option,
    ):
        command = option(command)
    return command


@click.group(invoke_without_command=True)
@list_options
@click.pass_context
def jobs(context: click.Context, /, limit: int, **options: Any) -> None:
    """List, show, change, revive, cancel and delete jobs. Without a verb: list."""
    if context.invoked_subcommand is None:
        _list(context, limit, options)


@jobs.command("list")
@list_options
@click.pass_context
def list_(context: click.Context, /, limit: int, **options: Any) -> None:
    """List jobs, the newest first. The next page: --before and the last id.

    The column `when` says when a job is due, was claimed or has ended, as its state is.
    """
    _list(context, limit, options)


@jobs.command()
@click.argument("job_id", metavar="ID")
@json_option
@utc_option
@database_options
@app_option
@click.pass_context
def show(context: click.Context, job_id: str) -> None:
    """Show a job: what it is, its timeline, its log and its error."""
    meant = parse_prefix(job_id)
    with working(asked(context)) as engine:
        client = Client(engine)
        wanted = client.run(job_meant(meant))
        job, timeline, log = client.get(wanted), client.timeline(wanted), client.logs(wanted)
        at = times(engine, asked(context))
    if asked(context).json:
        output.say_json({"job": job, "timeline": [_entry(each) for each in timeline], "log": log})
    else:
        show_job(job, timeline, log, at)


@jobs.command()
@bulk_options
@click.pass_context
def revive(context: click.Context, /, **options: Any) -> int:
    """Queue finished jobs again: budgets start anew, the number of the attempt goes on.

    A filter means only failed jobs, unless --state says otherwise.
    """
    return Bulk("revive", ReviveMany, FINAL, (State.FAILED,)).run(asked(context), options)


@jobs.command()
@bulk_options
@click.pass_context
def retry(context: click.Context, /, **options: Any) -> int:
    """The old name of `revive`, which does the same."""
    output.warn("`fencerow jobs retry` is called `fencerow jobs revive` now; the old name goes away with 1.0")
    return Bulk("revive", ReviveMany, FINAL, (State.FAILED,), called="retry").run(asked(context), options)


@jobs.command()
@bulk_options
@change_options
@click.pass_context
def change(context: click.Context, /, **options: Any) -> int:
    """Change jobs that no worker runs: when they are due, their priority, their queue, their arguments.

    --queue chooses the jobs of a queue; --move-to says where they go.
    """
    wanted = wanted_change(options, asked(context))
    idle = LIVE - {State.RUNNING}
    return Bulk("change", partial(ChangeMany, wanted=wanted), idle, idle).run(asked(context), options)


@jobs.command()
@bulk_options
@click.option("--only-queued", is_flag=True, help="Do not cancel running jobs.")
@click.pass_context
def cancel(context: click.Context, /, only_queued: bool, **options: Any) -> int:
    """Cancel jobs: at once if no worker runs them, else by a request to the worker."""

    default = LIVE - {State.RUNNING} if only_queued else LIVE
    return Bulk("cancel", partial(CancelMany, only_queued=only_queued), LIVE, default).run(
        asked(context), options
    )


@jobs.command()
@bulk_options
@click.pass_context
def delete(context: click.Context, /, **options: Any) -> int:
    """Delete finished jobs with their timeline and log. Jobs that have not ended stay."""

    return Bulk("delete", lambda _actor, _reason: DeleteMany(), FINAL, FINAL).run(asked(context), options)


def _list(context: click.Context, limit: int, options: dict[str, Any]) -> None:
    chosen = made(options)
    with working(asked(context)) as engine:
        found = page(engine, placed(engine, chosen, options["before"]), limit)
        at = times(engine, asked(context))
    if asked(context).json:
        output.say_json([instants(listed(job).items()) for job in found])
        return
    output.table(COLUMNS, [_row(job, at) for job in found], none="no such jobs")
    if len(found) == limit:
        output.warn(f"the next page: --before {found[-1].id}")


def _row(job: JobRecord, at: Times) -> tuple[object, ...]:
    return (
        job.id,
        job.state.value,
        at.when(job.ended_at_us or (job.claimed_at_us if job.state is State.RUNNING else job.run_at_us)),
        job.name,
        job.queue,
        _note(job),
        job.attempt,
        at.when(job.submitted_at_us),
    )


def _entry(each: Happening) -> dict[str, Any]:
    """A timeline entry; the instants in its detail are ours as well."""
    detail = instants(each.detail.items()) if isinstance(each.detail, dict) else each.detail
    return {**plain(each), "detail": detail}


def _note(job: JobRecord) -> str:
    if isinstance(job.error, dict) and job.state is State.FAILED:
        return str(job.error.get("message") or job.error.get("type") or "")
    if job.cancel_requested_at_us and not job.is_final:
        return "cancel asked"
    if job.progress is not None and not job.is_final:
        return f"{job.progress:g} % {job.progress_note or ''}".strip()
    return ", ".join(job.tags or [])
