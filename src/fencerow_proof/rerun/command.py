"""`fencerow rerun JOB --here`: a stored job runs again beside its database, and what differs is shown."""

from __future__ import annotations

import click

from fencerow.command import output
from fencerow.command.app_loading import load_app
from fencerow.command.database import resolved, working
from fencerow.command.options import asked, usual_options
from fencerow.core.client.base import ClientBase
from fencerow.core.errors import InvalidInput
from fencerow.db.errors import exits
from fencerow_proof.check.command import declared
from fencerow_proof.check.options import RUN_S, Options
from fencerow_proof.rerun.ground import run_again
from fencerow_proof.rerun.report import compared
from fencerow_proof.rerun.stored import handler_of, kept, reading_stored


@click.command()
@click.argument("job")
@click.option("--here", is_flag=True, help="On a scratch database: nothing of the real one is written.")
@click.option("--from", "begin", metavar="STEP", help="The first step that is done again.")
@click.option(
    "--setup", metavar="MODULE:FUNCTION | FILE.sql", help="Makes the tables and rows that the handler needs."
)
@click.option(
    "--outside",
    multiple=True,
    metavar="MODULE:FUNCTION[,answer=MODULE:FUNCTION]",
    help="An outside call to be faked. May be repeated.",
)
@click.option(
    "--allow",
    multiple=True,
    metavar="socket:HOST[:PORT] | file:PATH | process:NAME",
    help="May leave the process, for real. May be repeated.",
)
@click.option(
    "--scratch", metavar="URL", help="An empty PostgreSQL database beside which a scratch one is made."
)
@click.option(
    "--run-max", "run_s", type=float, default=RUN_S, show_default=True, metavar="SECONDS", help="Of the run."
)
@usual_options
@click.pass_context
def rerun(
    context: click.Context,
    job: str,
    here: bool,
    begin: str | None,
    setup: str | None,
    outside: tuple[str, ...],
    allow: tuple[str, ...],
    scratch: str | None,
    run_s: float,
) -> int:
    """Run a stored job again on a scratch database, and show what it would write and where that differs.

    Remembered steps answer as they did, and nobody sleeps again; with --from that step and those behind it are done
    anew. Sockets, files and programs are refused unless they are allowed. The application is named by -A. The exit code
    is 1 if it comes to something else than it did.
    """
    if not here:
        raise InvalidInput(
            "rerun was asked for without --here",
            "with it the job runs on a scratch database, and nothing real is changed",
            "add --here; to run it for real: `fencerow jobs revive` or `fencerow steps revive`",
        )
    wanted = asked(context)
    name = wanted.app_name()
    app = load_app(name)
    with working(wanted) as engine:
        stored = ClientBase(engine).run(reading_stored(job))
    handler = handler_of(app, stored)
    remembered = kept(stored, begin)
    options = Options(
        job=stored.record.name,
        app=str(name) if ":" in str(name) else f"{name}:app",
        url=scratch,
        setup=setup,
        outside=tuple(map(declared, outside)),
        allowed=allow,
        run_s=run_s,
        is_stored=True,
    )
    ran = run_again(stored, remembered, options, resolved(wanted).url, lambda _line: None)
    found = compared(stored, remembered, ran, handler)
    if wanted.json:
        output.say_json(found)
    else:
        for line in found.lines():
            output.say(line)
    return exits.OK if found.same else exits.FAILED
