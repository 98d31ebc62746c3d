"""`fencerow mcp`: jobs for an assistant, over its standard input and output."""

from __future__ import annotations

import click

from fencerow.app import App
from fencerow.client import Client
from fencerow.command.database import actor, asked_app, resolved, working
from fencerow.command.options import app_option, asked, database_options
from fencerow.core.model.person import Person, Via
from fencerow.core.wing import witnessed
from fencerow.mcp.server import CHANGES, server_of
from fencerow.mcp.tools import Tools
from fencerow.web.dashboard.redacting import Redactor


@click.command()
@click.option(
    "--allow",
    multiple=True,
    type=click.Choice(CHANGES),
    help="Let the assistant do this, too; may be repeated. Without it, it only looks.",
)
@database_options
@app_option
@click.pass_context
def mcp(context: click.Context, allow: tuple[str, ...]) -> None:
    """Serve jobs to an assistant over standard input and output (Model Context Protocol), until its input ends.

    It looks at jobs, queues and what the doctor finds. With -A, what the application declares as secret is hidden, too.
    Each change is in the audit log, under the name of the setting `actor`. (extra `mcp`)
    """
    wanted = asked(context)
    app = asked_app(wanted)
    name = f"{actor(wanted.config())} by mcp"
    with working(wanted) as engine:
        tools = Tools(
            client=Client(engine),
            acting=Client(witnessed(engine, Person(name, Via.COMMAND)), actor=name),
            redactor=Redactor(None, {} if app is None else dict(app.jobs)),
            config=resolved(wanted),
            checks=app.checks() if isinstance(app, App) else (),
        )
        server_of(tools, allow).run("stdio")
