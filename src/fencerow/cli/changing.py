"""What `fencerow jobs change` is told to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from fencerow.cli.arguments import json_arguments
from fencerow.command import output
from fencerow.command.app_loading import load_app
from fencerow.command.completing import queue_names
from fencerow.command.options import CommandOptions
from fencerow.command.times import told_instant
from fencerow.core.errors import InvalidInput
from fencerow.core.model.change import NewArguments, plain_arguments
from fencerow.operators.job_change import JobChange, job_change, new_arguments

F = TypeVar("F", bound=Callable[..., Any])


def change_options(command: F) -> F:
    """--run-now, --run-at, --delay, --priority, --move-to and --args."""
    for option in reversed(
        (
            click.option("--run-now", is_flag=True, help="Make it due now; one that is due keeps its place."),
            click.option("--run-at", metavar="WHEN", help="Make it due then: 2026-12-24T18:00+01:00."),
            click.option(
                "--delay",
                "delay_s",
                type=float,
                metavar="SECONDS",
                help="Make it due so many seconds from now.",
            ),
            click.option("--priority", type=int, metavar="N", help="-100 to 100, higher first."),
            click.option(
                "--move-to", metavar="QUEUE", shell_complete=queue_names, help="Move it to this queue."
            ),
            click.option(
                "--args",
                "arguments",
                metavar="JSON",
                help="All its arguments from now on, as one JSON object; `-` reads it from the standard input.",
            ),
        )
    ):
        command = option(command)
    return command


def wanted_change(options: dict[str, Any], asked: CommandOptions) -> JobChange:
    """The change that these options describe; they are taken out of the others.

    Raises:
        InvalidInput: nothing is to be changed, two say when the job is due, or a value cannot be used.
    """
    run_at, arguments = options.pop("run_at"), options.pop("arguments")
    run_now, delay_s = options.pop("run_now"), options.pop("delay_s")
    priority, queue = options.pop("priority"), options.pop("move_to")
    if not run_now and all(each is None for each in (run_at, delay_s, priority, queue, arguments)):
        raise InvalidInput(
            "nothing was given to change",
            "a change says when jobs are due, their priority, their queue or their arguments",
            "add --run-now, --run-at, --delay, --priority, --move-to or --args",
        )
    return job_change(
        run_at=None if run_at is None else told_instant("--run-at", run_at),
        delay_s=delay_s,
        run_now=run_now,
        priority=priority,
        queue=queue,
        arguments=None if arguments is None else _arguments(arguments, asked),
    )


def _arguments(text: str, asked: CommandOptions) -> Callable[[str], NewArguments] | None:
    """Checked by the application if one is named; else they are stored as they are."""
    given = json_arguments(text, "--args")
    app = asked.app_name()
    if app is None:
        output.warn("no application was named (-A), so nobody checks the new arguments")
        return new_arguments(given, plain_arguments)
    return new_arguments(given, load_app(app).encode_arguments)
