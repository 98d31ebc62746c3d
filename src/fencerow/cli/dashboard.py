"""`fencerow dashboard`: the dashboard of a database, or of an application."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

import click

from fencerow.app import App
from fencerow.cli import logs
from fencerow.cli.doors import ServedAt, door_options, serve_until_told
from fencerow.cli.worker import log_options
from fencerow.command.database import asked_app, prepared, resolved
from fencerow.command.options import app_option, asked, database_options
from fencerow.config import Config
from fencerow.db.errors import exits
from fencerow.db.main_loop import run_main
from fencerow.supervisor.probes import listening

if TYPE_CHECKING:
    from fencerow.web.gateway.server import Serves

PORT = "8090"


@click.command()
@door_options(PORT)
@click.option(
    "--act", is_flag=True, help="Let visitors do what their tokens allow; without this they only look."
)
@click.option(
    "--replica",
    metavar="URL",
    help="Read the pages from this standby of the database, as long as it keeps up.",
    allow_from_autoenv=False,
)
@log_options
@database_options
@app_option
@click.pass_context
def dashboard(
    context: click.Context,
    at: ServedAt,
    act: bool,
    replica: str | None,
    log_level: str | None,
    log_format: str | None,
) -> int:
    """Show jobs, queues and workers in a browser until SIGTERM or SIGINT.

    Visitors log in with a token: `fencerow tokens create NAME --scope read` (to act, `operate` and --act).
    """
    wanted = asked(context)
    app = asked_app(wanted)
    if app is None:
        app = App(config=cast(Config, resolved(wanted, default=True)))
    assert isinstance(app, App)
    logs.set_up(app.config, log_level, log_format)
    with listening(at.address) as bound, prepared(app, wanted, reach_server=partial(at.patiently, bound)):
        run_main(
            serve_until_told(
                app,
                at,
                bound,
                lambda: _made(app, at, act=act, replica=replica),
                lambda place: [f"the dashboard is at {place}/, {'to act' if act else 'only to look'}"],
            )
        )
    return exits.OK


def _made(app: App, at: ServedAt, *, act: bool, replica: str | None) -> Serves:
    from fencerow.web.dashboard.asgi import Dashboard

    return Dashboard(app, read_only=not act, secured=at.secured, replica=replica)
