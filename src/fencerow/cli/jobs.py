"""`fencerow jobs`: list, show, change, revive, cancel, delete."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import click

from fencerow.cli.bulk import Bulk, bulk_options
from fencerow.cli.changing import change_options, wanted_change
from fencerow.cli.columns import COLUMNS, NAMES, UNIQUE, chosen_columns, row_of
from fencerow.cli.filters import filter_options, made, page, placed
from fencerow.cli.show import show_job
from fencerow.cli.timeline import timeline
from fencerow.client import Client
from fencerow.command import output
from fencerow.command.app_loading import load_app
from fencerow.command.database import asked_app, times, working
from fencerow.command.documents import instants, plain
from fencerow.command.options import (
    CommandOptions,
    asked,
    full_option,
    limit_option,
    usual_options,
    utc_option,
)
from fencerow.core.app.declare import DeclaredBase
from fencerow.core.model.job import Happening
from fencerow.core.model.state import FINAL, LIVE, State
from fencerow.doctor.why import briefly
from fencerow.handovers.looking import handover_document, placed_handover
from fencerow.operators.looking import listed
from fencerow.operators.many import CancelMany, ChangeMany, DeleteMany, ReviveMany
from fencerow.operators.names import worker_names
from fencerow.operators.prefixes import job_meant, parse_prefix
from fencerow.unique.keys import unique_keys_of

F = TypeVar("F", bound=Callable[..., Any])
WAITS = LIVE - {State.RUNNING}
BESIDE_ROWS = 4  # the header, what was left out, where the next page begins, and the prompt


def list_options(command: F) -> F:
    """Which jobs a list shows, and how."""
    for option in reversed(
        (
            filter_options,
            limit_option(50),
            click.option(
                "--columns",
                metavar="NAME,...",
                help=f"Show these columns, in this order: {', '.join(NAMES)}.",
            ),
            full_option,
            utc_option,
            usual_options,
        )
    ):
        command = option(command)
    return command


@click.group(invoke_without_command=True)
@list_options
@click.pass_context
def jobs(context: click.Context, /, limit: int, columns: str | None, **options: Any) -> None:
    """List, show, change, revive, cancel and delete jobs. Without a verb: list."""
    if context.invoked_subcommand is None:
        _list(context, limit, columns, options)


jobs.add_command(timeline)


@jobs.command("list")
@list_options
@click.pass_context
def list_(context: click.Context, /, limit: int, columns: str | None, **options: Any) -> None:
    """List jobs, the newest first. The next page: --before and the last id.

    At a terminal, and without --limit, as many as its window shows.

    The column `when` says when a job is due, was claimed or has ended.
    """
    _list(context, limit, columns, options)


@jobs.command()
@click.argument("job_id", metavar="ID")
@utc_option
@usual_options
@click.pass_context
def show(context: click.Context, job_id: str) -> None:
    """Show a job: what it is, its timeline, its log and its error.

    With -A what the application declares as secret is hidden; --json has all that is stored.
    """
    meant = parse_prefix(job_id)
    with working(asked(context)) as engine:
        client = Client(engine)
        wanted = client.run(job_meant(meant))
        job, moves, log = client.get(wanted), client.timeline(wanted), client.logs(wanted)
        unique = engine.run(unique_keys_of([wanted])).get(wanted, [])
        handover = engine.run(placed_handover(wanted))
        waits = client.run(briefly(wanted)) if job.state in WAITS and not asked(context).json else None
        names = client.run(worker_names([job.holder, *(each.actor for each in moves)]))
        at = times(engine, asked(context))
    if asked(context).json:
        entries = [_entry(each) for each in moves]
        output.say_json(
            {
                "job": job,
                "timeline": entries,
                "log": log,
                "unique": unique,
                "handover": None if handover is None else handover_document(handover),
            }
        )
    else:
        declared = _declared(asked(context), job.name)
        show_job(job, moves, log, at, unique, handover, waits, names, declared)


@jobs.command()
@bulk_options
@click.pass_context
def revive(context: click.Context, /, **options: Any) -> int:
    """Queue finished jobs again: budgets are full again, the number of the attempt goes on.

    A filter means only failed jobs, unless --state says otherwise.
    """
    return Bulk("revive", ReviveMany, FINAL, (State.FAILED,)).run(asked(context), options)


@jobs.command()
@change_options
@bulk_options
@click.pass_context
def change(context: click.Context, /, **options: Any) -> int:
    """Change jobs that no worker runs: when they are due, their priority, their queue, their arguments.

    --queue chooses the jobs of a queue; --move-to says where they go.
    """
    wanted = wanted_change(options, asked(context))
    idle = LIVE - {State.RUNNING}
    return Bulk("change", partial(ChangeMany, wanted=wanted), idle, idle).run(asked(context), options)


@jobs.command()
@click.option("--only-queued", is_flag=True, help="Do not cancel running jobs.")
@bulk_options
@click.pass_context
def cancel(context: click.Context, /, only_queued: bool, **options: Any) -> int:
    """Cancel jobs: at once if no worker runs them, else by a request to the worker.

    A whole queue, without what runs: `jobs cancel --only-queued --queue mail`. A cancelled job can be revived.
    """

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


def _declared(asked: CommandOptions, name: str) -> DeclaredBase[..., ..., Any, Any] | None:
    """The job as the application that was named declares it, if one was."""
    app = asked_app(asked) if asked.app is None else load_app(asked.app)
    return None if app is None else app.jobs.get(name)


def _list(context: click.Context, limit: int, columns: str | None, options: dict[str, Any]) -> None:
    chosen, shown = made(options), COLUMNS if columns is None else chosen_columns(columns)
    limit = limit if _was_said(context, "limit") else _fitting(limit, json=asked(context).json)
    with working(asked(context)) as engine:
        found = page(engine, placed(engine, chosen, options["before"]), limit)
        at = times(engine, asked(context))
        wants_unique = any(column.name == UNIQUE for column in shown)
        unique = engine.run(unique_keys_of([job.id for job in found])) if wants_unique else {}
    if asked(context).json:
        output.say_json([instants(listed(job).items()) for job in found])
        return
    rows = [row_of(job, at, shown, unique.get(job.id, ())) for job in found]
    output.table(shown, rows, none="no such jobs", full=asked(context).full)
    if len(found) == limit:
        output.warn(f"the next page: --before {found[-1].id}")


def _was_said(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT


def _fitting(limit: int, *, json: bool) -> int:
    """As many as the window shows at once: the newest would stand above it otherwise, and the header too."""
    height = output.height()
    return limit if json or height is None else max(1, min(limit, height - BESIDE_ROWS))


def _entry(each: Happening) -> dict[str, Any]:
    """A timeline entry; the instants in its detail are ours as well."""
    detail = instants(each.detail.items()) if isinstance(each.detail, dict) else each.detail
    return {**plain(each), "detail": detail}
