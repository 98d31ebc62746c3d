"""`fencerow submit`: one job, checked by the application's own declaration."""

from __future__ import annotations

from typing import Any

import click

from fencerow.cli.arguments import parsed_arguments
from fencerow.cli.following import following
from fencerow.command import output
from fencerow.command.app_loading import load_app
from fencerow.command.completing import job_names
from fencerow.command.database import prepared
from fencerow.command.options import CommandOptions, asked, usual_options
from fencerow.core.app import JobsApp
from fencerow.core.client.handle import Handle
from fencerow.core.model.state import State
from fencerow.db.errors import exits


@click.command()
@click.argument("job", shell_complete=job_names)
@click.argument("arguments", metavar="[JSON | KEY=VALUE]...", nargs=-1)
@click.option("--key", metavar="KEY", help="Idempotency key: the same key and payload give the same job.")
@click.option("--scope", metavar="SCOPE", help="The scope of the key; by default the job's name.")
@click.option("--id", "id", metavar="ID", help="An id of your own, so that you can repeat the submit.")
@click.option("--queue", metavar="NAME", help="Use this queue instead of the job's own.")
@click.option(
    "--delay", "delay_s", type=float, metavar="SECONDS", help="Make the job due so many seconds from now."
)
@click.option("--priority", type=int, metavar="N", help="-100 to 100, higher first.")
@click.option("--attempts-max", type=int, metavar="N", help="How many failed attempts end the job.")
@click.option("--timeout", "timeout_s", type=float, metavar="SECONDS", help="How long one attempt may run.")
@click.option(
    "--expires",
    "expires_s",
    type=float,
    metavar="SECONDS",
    help="Expire the job if no attempt has started by then.",
)
@click.option(
    "--tag", "tags", multiple=True, metavar="TAG", help="A label to find the job by; may be repeated."
)
@click.option("--exclusive", metavar="KEY", help="Of the jobs of this key one runs at a time.")
@click.option(
    "--limit", "limits", multiple=True, metavar="NAME", help="A limit under which it runs; may be repeated."
)
@click.option("--share", metavar="NAME", help="Whose it is: the shares of a queue take turns.")
@click.option("--affinity", metavar="LABEL", help="A worker must carry this label to take it.")
@click.option(
    "--affinity-wait",
    "affinity_wait_s",
    type=float,
    metavar="SECONDS",
    help="So long after it is due anybody may take it; without this, nobody else ever.",
)
@click.option("--unique", metavar="KEY", help="If a job under this unique key has not ended, make none.")
@click.option("--wait", is_flag=True, help="Wait for the job's end and print its result.")
@click.option("--wait-max", "wait_s", type=float, metavar="SECONDS", help="Wait no longer than this.")
@usual_options
@click.pass_context
def submit(
    context: click.Context,
    /,
    job: str,
    arguments: tuple[str, ...],
    wait: bool,
    wait_s: float | None,
    limits: tuple[str, ...],
    **options: Any,
) -> int:
    """Submit a job of the application and print its id.

    Arguments are one JSON object, `-` to read it from the standard input, or KEY=VALUE pairs. A value that is
    not JSON is text.
    """
    words = parsed_arguments(arguments)
    wanted = asked(context)
    with prepared(load_app(wanted.app_name(), url=wanted.url), wanted) as app:
        handle = app.submit_by_name(job, words, limits=limits or None, **options)
        if wait or wait_s is not None:
            return _waited(app, handle, wait_s, wanted)
    if wanted.json:
        output.say_json({"id": handle.id, "replay": handle.replay, "answer": handle.answer})
    else:
        if handle.replay:
            output.warn(f"{handle.answer}: an earlier submit had made this job")
        output.say(handle.id)
    return exits.OK


def _waited(app: JobsApp, handle: Handle[Any], wait_s: float | None, wanted: CommandOptions) -> int:
    output.warn(f"{'submitted' if not handle.replay else handle.answer} {handle.id}")
    with following(handle, json=wanted.json):
        ended = app.client.wait_ended(handle.id, wait_s)
        result = app.client.handle(handle.id).result(0) if ended.state is State.SUCCEEDED else None
    if wanted.json:
        output.say_json(
            {
                "id": handle.id,
                "replay": handle.replay,
                "answer": handle.answer,
                "state": ended.state,
                "result": result,
                "error": ended.error,
            }
        )
        return exits.OK if ended.state is State.SUCCEEDED else exits.JOB_FAILED
    handle.result(wait_s)  # raises what the job's end means
    output.say(output.document(result))
    return exits.OK
