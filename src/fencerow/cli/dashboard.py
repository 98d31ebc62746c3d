"""`fencerow dashboard`: the dashboard of a database, or of an application."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from fencerow.app import App
from fencerow.cli import logs
from fencerow.cli.serve import SIGNALS, refuse_bare
from fencerow.cli.serve import _tls as tls_of  # pyright: ignore[reportPrivateUsage]
from fencerow.cli.signals import Signals
from fencerow.cli.worker import log_options
from fencerow.command import output
from fencerow.command.database import asked_app, prepared, resolved
from fencerow.command.options import app_option, asked, database_options
from fencerow.config import Config
from fencerow.core.errors import MissingExtra, exits
from fencerow.core.main_loop import run_main
from fencerow.supervisor.probes import Address, parsed_address

if TYPE_CHECKING:
    from fencerow.web.gateway.asgi import Gateway
    from fencerow.web.gateway.server import Server

DEFAULT_BIND = "8090"


@click.command()
@click.option(
    "--bind",
    metavar="[ADDRESS:]PORT",
    default=DEFAULT_BIND,
    show_default=True,
    help="Listen there; without an address, for this machine only.",
)
@click.option(
    "--tls-cert", type=click.Path(path_type=Path), metavar="FILE", help="The certificate chain, in PEM."
)
@click.option("--tls-key", type=click.Path(path_type=Path), metavar="FILE", help="Its private key, in PEM.")
@click.option(
    "--behind-proxy",
    is_flag=True,
    help="A proxy before it speaks TLS; without this or a certificate, it listens to this machine only.",
)
@click.option(
    "--act", is_flag=True, help="Let visitors do what their tokens allow; without this they only look."
)
@log_options
@database_options
@app_option
@click.pass_context
def dashboard(
    context: click.Context,
    bind: str,
    tls_cert: Path | None,
    tls_key: Path | None,
    behind_proxy: bool,
    act: bool,
    log_level: str | None,
    log_format: str | None,
) -> int:
    """Show jobs, queues and workers in a browser until SIGTERM or SIGINT.

    Visitors log in with a token: `fencerow tokens create NAME --scope read` (to act, `operate` and --act).
    """
    wanted = asked(context)
    address = parsed_address(bind, "--bind")
    tls = tls_of(tls_cert, tls_key)
    secured = tls is not None or behind_proxy
    refuse_bare(address, secured=secured)
    app = asked_app(wanted)
    if app is None:
        app = App(config=cast(Config, resolved(wanted, default=True)))
    assert isinstance(app, App)
    with prepared(app, wanted):
        logs.set_up(app.config, log_level, log_format)
        run_main(_shown(app, address, tls, secured=secured, act=act))
    return exits.OK


async def _shown(app: App, address: Address, tls: ssl.SSLContext | None, *, secured: bool, act: bool) -> None:
    try:
        from fencerow.web.dashboard.asgi import Dashboard
        from fencerow.web.gateway.server import Server, listening
        from fencerow.web.settings import WebSettings
    except ImportError as error:
        raise MissingExtra(
            f"the dashboard needs {error.name}", "it comes with an extra", "pip install 'fencerow[web]'"
        ) from None
    found = listening(address)
    made = Dashboard(app, read_only=not act, secured=secured)
    # The server asks no more of what it serves than to leave and to close.
    server = Server(cast("Gateway", made), WebSettings.of(app.config), tls=tls)
    loop = asyncio.get_running_loop()
    host, port = found.getsockname()[:2]
    place = f"http{'s' if tls else ''}://{f'[{host}]' if ':' in host else host}:{port}"
    output.warn(f"the dashboard is at {place}/, {'to act' if act else 'only to look'}")
    try:
        with Signals(SIGNALS, lambda _name: _tell(loop, server)):
            await server.run([found])
    finally:
        await app.aclose()


def _tell(loop: asyncio.AbstractEventLoop, server: Server) -> None:
    loop.call_soon_threadsafe(server.leave)
