"""`fencerow output`: what a job has emitted, and what it emits."""

from __future__ import annotations

import click
import msgspec

from fencerow.command import output as told
from fencerow.command.database import asked_app, working
from fencerow.command.documents import instants
from fencerow.command.options import asked, usual_options
from fencerow.core.client.base import ClientBase
from fencerow.operators.prefixes import job_meant, parse_prefix
from fencerow.output.model import Chunk
from fencerow.output.reading import Following


@click.command()
@click.argument("job")
@click.option("--follow", is_flag=True, help="Wait for what is still to come, until the job has ended.")
@click.option("--after", type=int, default=0, metavar="OFFSET", help="Only what comes behind this offset.")
@usual_options
@click.pass_context
def output(context: click.Context, job: str, *, follow: bool = False, after: int = 0) -> None:
    """Print what a job emits by job.emit: texts as they are, other chunks as lines of JSON.

    With --json each chunk is a line, with its offset and attempt. Where another attempt begins, a line on standard
    error says so.
    """
    with working(asked(context)) as engine:
        client = ClientBase(engine)
        if (app := asked_app(asked(context))) is not None:
            client.packing = app.client.packing  # what is sealed is read by whoever has the key
        job_id = client.run(job_meant(parse_prefix(job)))
        attempt = 0
        for chunk in Following(client, job_id, after, None, follow=follow):
            if attempt not in (0, chunk.attempt):
                told.warn(f"(attempt {chunk.attempt})")
            attempt = chunk.attempt
            _say(chunk, as_json=asked(context).json)


def _say(chunk: Chunk, *, as_json: bool) -> None:
    if as_json:
        told.say_part(msgspec.json.encode(instants(msgspec.structs.asdict(chunk).items())).decode() + "\n")
    elif isinstance(chunk.data, str):
        told.say_part(chunk.data)
    else:
        told.say_part(msgspec.json.encode(chunk.data).decode() + "\n")
