"""`fencerow worker` and `fencerow dev`: a process that runs jobs until it is told to stop."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import click

from fencerow.cli import logs
from fencerow.cli.developing import shown
from fencerow.cli.metrics_port import MEMBER_METRICS, check_metrics, metrics_of
from fencerow.cli.running import run_worker
from fencerow.cli.serving import MEMBER, Attended, developed, lifeline_of, reloaded, supervised
from fencerow.command.app_loading import load_app
from fencerow.command.database import prepared
from fencerow.command.options import CommandOptions, app_option, asked, database_options
from fencerow.command.patience import reach_patiently
from fencerow.command.queues import queue_list
from fencerow.core.app import JobsApp, LocalDatabaseWarning
from fencerow.core.config import LOG_FORMATS, LOG_LEVELS
from fencerow.core.errors import InvalidInput, NoDatabase
from fencerow.db.text import check_text
from fencerow.supervisor.lifeline import Lifeline
from fencerow.supervisor.probes import parsed_address

F = TypeVar("F", bound=Callable[..., Any])
SLOTS_MAX = 10_000
NAME_MAX = 200
PROCESSES_MAX = 1_000
SCHEDULES = ("schedules", "declared schedules")  # the chores that --no-schedules leaves to others


def log_options(command: F) -> F:
    """--log-level and --log-format."""
    for option in (
        click.option(
            "--log-level",
            type=click.Choice(LOG_LEVELS),
            help="The lowest level that is logged; by default info.  [env: FENCEROW_LOG_LEVEL]",
        ),
        click.option(
            "--log-format",
            type=click.Choice(LOG_FORMATS),
            help="How the log is written; by default console.  [env: FENCEROW_LOG_FORMAT]",
        ),
    ):
        command = option(command)
    return command


@click.command()
@click.option(
    "-Q",
    "--queues",
    metavar="NAME[:SLOTS],...",
    help="Serve these; by default the queues of the declared jobs.",
)
@click.option(
    "--slots", type=click.IntRange(1, SLOTS_MAX), help="How many jobs run at a time.  [env: FENCEROW_SLOTS]"
)
@click.option("--name", metavar="NAME", help="The name that `workers` shows; by default host and process id.")
@click.option(
    "--processes",
    type=click.IntRange(1, PROCESSES_MAX),
    default=1,
    metavar="N",
    help="Run this many worker processes, each with its own slots, and restart those that die.",
)
@click.option(
    "--health",
    metavar="[ADDRESS:]PORT",
    help="Answer /livez and /readyz there; without an address, to this machine only.",
)
@click.option(
    "--metrics",
    is_flag=True,
    help="Answer /metrics at the address of --health, too, in the format of Prometheus.",
)
@click.option(MEMBER, hidden=True, allow_from_autoenv=False)
@click.option(MEMBER_METRICS, hidden=True, allow_from_autoenv=False)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="LABEL",
    help="Take the jobs whose affinity names this label; may be given several times.  [env: FENCEROW_LABELS]",
)
@click.option("--no-schedules", is_flag=True, help="Leave schedules to other workers: make no ticks of them.")
@click.option("--once", is_flag=True, help="Run what is due, then exit.")
@click.option("--drain", is_flag=True, help="Run until no job of its queues is left, then exit.")
@log_options
@database_options
@app_option
@click.pass_context
def worker(
    context: click.Context,
    queues: str | None,
    slots: int | None,
    name: str | None,
    processes: int,
    health: str | None,
    metrics: bool,
    member: str | None,
    member_metrics: str | None,
    labels: tuple[str, ...],
    no_schedules: bool,
    once: bool,
    drain: bool,
    log_level: str | None,
    log_format: str | None,
) -> int:
    """Run the application's jobs until SIGTERM or SIGINT.

    The first signal stops claiming and lets running jobs end. A second one cancels and releases them.
    With --processes, SIGHUP replaces the processes one after the other.
    """
    lifeline = lifeline_of(member)
    wanted = asked(context)
    chosen = parsed_queues(queues)
    if name is not None:
        check_text(name, "--name", NAME_MAX)
    address = None if health is None else parsed_address(health)
    if metrics:
        check_metrics(address)
    if processes > 1 and lifeline is None:
        return supervised(processes, address, wanted, log_level, log_format, metrics=metrics)
    if name is not None and lifeline is not None:
        name = f"{name}-{lifeline.number}"
    app = load_app(wanted.app_name(), url=wanted.url)
    if not app.is_named:
        raise NoDatabase(
            "no database was named",
            "a worker on a file that nobody chose would wait for jobs that other processes submit elsewhere",
            "give --url, set FENCEROW_URL, or name it in App(...); `fencerow dev` makes a local file",
        )
    logs.set_up(app.config, log_level, log_format)
    attended = Attended(lifeline, address, metrics=metrics)
    with attended.outside(), prepared(app, wanted, reach_server=reach_patiently):
        without = SCHEDULES if no_schedules else ()
        made = app.worker(queues=chosen, slots=slots, name=name, labels=labels or None, without=without)
        told = metrics_of(app, made) if metrics else None
        with attended.through(made, told, member_metrics):
            return run_worker(
                app, made, once=once, drain=drain, signalled=lifeline.signalled if lifeline else None
            )


@click.command()
@click.option(
    "-Q",
    "--queues",
    metavar="NAME[:SLOTS],...",
    help="Serve these; by default the queues of the declared jobs.",
)
@click.option(
    "--slots", type=click.IntRange(1, SLOTS_MAX), help="How many jobs run at a time.  [env: FENCEROW_SLOTS]"
)
@click.option(
    "--reload/--no-reload",
    "reload",
    default=True,
    show_default=True,
    help="Start the worker again when a source file changes. Without it a debugger has the terminal.",
)
@click.option(
    "--dashboard/--no-dashboard",
    default=True,
    show_default=True,
    help="Show the dashboard, at an address of this machine that is told at the start.",
)
@click.option(
    "--open/--no-open",
    "opened",
    default=True,
    show_default=True,
    help="Open it in a browser, if there is a display.",
)
@click.option("--secret", hidden=True)
@click.option(MEMBER, hidden=True, allow_from_autoenv=False)
@log_options
@database_options
@app_option
@click.pass_context
def dev(
    context: click.Context,
    queues: str | None,
    slots: int | None,
    reload: bool,
    dashboard: bool,
    opened: bool,
    secret: str | None,
    member: str | None,
    log_level: str | None,
    log_format: str | None,
) -> int:
    """Work on your application: one process that migrates and runs jobs, on a local file if no database is named."""
    lifeline = lifeline_of(member)
    wanted = asked(context)
    chosen = parsed_queues(queues)
    if reload and lifeline is None:
        return reloaded(wanted, log_level, log_format)
    app = load_app(wanted.app_name(), url=wanted.url)
    logs.set_up(app.config, log_level, log_format)
    with warnings.catch_warnings():
        # The log says it too.
        warnings.simplefilter("ignore", LocalDatabaseWarning)
        with shown(app, secret, wanted=dashboard, opened=opened) as place:
            return _developed(app, chosen, slots, wanted, lifeline, place)


def _developed(
    app: JobsApp,
    queues: dict[str, int] | list[str] | None,
    slots: int | None,
    wanted: CommandOptions,
    lifeline: Lifeline | None,
    place: str,
) -> int:
    with prepared(app, wanted, migrate=True, reach_server=reach_patiently):
        made = app.worker(queues=queues, slots=slots)
        signalled = lifeline.signalled if lifeline else None
        with developed(made, lifeline):
            return run_worker(app, made, signalled=signalled, more=_more(app, wanted, place))


def _more(app: JobsApp, wanted: CommandOptions, place: str) -> dict[str, str]:
    """How to see something happen."""
    first = min(app.handlers, default=None)
    submit = f"submit one from another terminal: fencerow submit -A {wanted.app_name()} {first}"
    return {"dashboard": place, "next": submit if first else ""}


def parsed_queues(text: str | None) -> dict[str, int] | list[str] | None:
    """`mail:5,docs:2` gives each queue slots of its own, `mail,docs` lets them share; `tenant\\:7` has a colon in it.

    Raises:
        InvalidInput: it is neither.
    """
    if text is None:
        return None
    parts = queue_list(text)
    names = [name for name, _ in parts]
    if not all(names) or len(set(names)) < len(names):
        raise _bad_queues(text, "a queue's name is missing or stands twice")
    if all(number is None for _, number in parts):
        return names
    slots = {name: int(number) for name, number in parts if number and number.isascii() and number.isdigit()}
    if len(slots) < len(parts) or not all(0 < number <= SLOTS_MAX for number in slots.values()):
        raise _bad_queues(text, f"either every queue has slots, from 1 to {SLOTS_MAX}, or none has")
    return slots


def _bad_queues(text: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"-Q {ascii(text)[1:-1][:100]} cannot be used",
        why,
        r"write -Q mail:5,documents:2; a colon in a name is written \:",
    )
