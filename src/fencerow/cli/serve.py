"""`fencerow serve`: the HTTP gateway of an application, and beside it its dashboard."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from fencerow.app import App
from fencerow.cli import logs
from fencerow.cli.doors import ServedAt, door_options, serve_until_told
from fencerow.cli.worker import log_options
from fencerow.command.app_loading import load_app, loaded
from fencerow.command.database import prepared
from fencerow.command.options import app_option, asked, database_options
from fencerow.core.errors import InvalidInput
from fencerow.db.errors import exits
from fencerow.db.main_loop import run_main
from fencerow.supervisor.probes import listening

if TYPE_CHECKING:
    from fencerow.web.gateway.route import Route
    from fencerow.web.gateway.server import Serves

PORT = "8080"


@click.command()
@door_options(PORT)
@click.option("--metrics", is_flag=True, help="Answer /metrics, too, in the format of Prometheus.")
@click.option("--dashboard", is_flag=True, help="Show the dashboard at /dashboard/, too.")
@click.option("--act", is_flag=True, help="Let visitors of the dashboard do what their tokens allow, too.")
@click.option(
    "--discord", metavar="MODULE:NAME", help="Take Discord's interactions at /discord/interactions, too."
)
@log_options
@database_options
@app_option
@click.pass_context
def serve(
    context: click.Context,
    at: ServedAt,
    metrics: bool,
    dashboard: bool,
    act: bool,
    discord: str | None,
    log_level: str | None,
    log_format: str | None,
) -> int:
    """Serve the application's jobs over HTTP until SIGTERM or SIGINT.

    Callers need a token: `fencerow tokens create`. /openapi.json has all that it can do.
    """
    wanted = asked(context)
    if act and not dashboard:
        raise InvalidInput(
            "--act is given without --dashboard",
            "it is for visitors of the dashboard; what callers may do, their tokens say",
            "add --dashboard, or leave out --act",
        )
    app = load_app(wanted.app_name(), url=wanted.url)
    logs.set_up(app.config, log_level, log_format)
    with listening(at.address) as bound, prepared(app, wanted, reach_server=partial(at.patiently, bound)):
        assert isinstance(app, App)
        run_main(
            serve_until_told(
                app,
                at,
                bound,
                lambda: _with_discord(discord, _made(app, at, metrics=metrics, dashboard=dashboard, act=act)),
                lambda place: _banner(place, dashboard=dashboard, act=act),
            )
        )
    return exits.OK


def _made(app: App, at: ServedAt, *, metrics: bool, dashboard: bool, act: bool) -> Serves:
    from fencerow.web.gateway.asgi import Gateway

    gateway = Gateway(app, also=[_metrics_of(app)] if metrics else ())
    gateway.describe()
    if not dashboard:
        return gateway
    from fencerow.web.dashboard.asgi import Dashboard
    from fencerow.web.dashboard.beside import GatewayBeside

    return GatewayBeside(gateway, Dashboard(app, read_only=not act, secured=at.secured))


def _with_discord(name: str | None, served: Serves) -> Serves:
    if name is None:
        return served
    from fencerow.web.discord.beside import DiscordBeside
    from fencerow.web.discord.endpoint import Discord

    found = loaded(
        name,
        Discord,
        "endpoint of Discord",
        title="Discord",
        usual="discord",
        arguments="app, public_key=...",
    )
    return DiscordBeside(served, found)


def _banner(place: str, *, dashboard: bool, act: bool) -> Sequence[str]:
    shown = f"the dashboard is at {place}/dashboard/, {'to act' if act else 'only to look'}"
    return [f"serving on {place}", *([shown] if dashboard else [])]


def _metrics_of(app: App) -> Route:
    from fencerow.metrics import Metrics
    from fencerow.web.gateway.metrics import metrics_route

    return metrics_route(Metrics(app))
