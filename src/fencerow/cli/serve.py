"""`fencerow serve`: the HTTP gateway of an application."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fencerow.app import App
from fencerow.cli import logs
from fencerow.cli.signals import Signals
from fencerow.cli.worker import log_options
from fencerow.command import output
from fencerow.command.app_loading import load_app
from fencerow.command.database import prepared
from fencerow.command.options import app_option, asked, database_options
from fencerow.core.errors import ConfigError, MissingExtra, exits
from fencerow.core.main_loop import run_main
from fencerow.supervisor.probes import Address, parsed_address
from fencerow.web.gateway.certificate import context_of

if TYPE_CHECKING:
    from fencerow.web.gateway.route import Route

DEFAULT_BIND = "8080"
SIGNALS = (signal.SIGTERM, signal.SIGINT)


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
@click.option("--metrics", is_flag=True, help="Answer /metrics, too, in the format of Prometheus.")
@log_options
@database_options
@app_option
@click.pass_context
def serve(
    context: click.Context,
    bind: str,
    tls_cert: Path | None,
    tls_key: Path | None,
    behind_proxy: bool,
    metrics: bool,
    log_level: str | None,
    log_format: str | None,
) -> int:
    """Serve the application's jobs over HTTP until SIGTERM or SIGINT.

    Callers need a token: `fencerow tokens create`. /openapi.json has all that it can do.
    """
    wanted = asked(context)
    address = parsed_address(bind, "--bind")
    tls = _tls(tls_cert, tls_key)
    refuse_bare(address, secured=tls is not None or behind_proxy)
    app = load_app(wanted.app_name(), url=wanted.url)
    with prepared(app, wanted):
        logs.set_up(app.config, log_level, log_format)
        assert isinstance(app, App)
        run_main(_served(app, address, tls, metrics=metrics))
    return exits.OK


async def _served(app: App, address: Address, tls: ssl.SSLContext | None, *, metrics: bool) -> None:
    try:
        from fencerow.web.gateway.asgi import Gateway
        from fencerow.web.gateway.server import Server, listening
        from fencerow.web.settings import WebSettings
    except ImportError as error:
        raise MissingExtra(
            f"the gateway needs {error.name}", "it comes with an extra", "pip install 'fencerow[web]'"
        ) from None
    also = _metrics_of(app) if metrics else ()
    found = listening(address)
    server = Server(Gateway(app, also=also), WebSettings.of(app.config), tls=tls)
    loop = asyncio.get_running_loop()

    def leave(_signal: str) -> None:
        loop.call_soon_threadsafe(server.leave)

    host, port = found.getsockname()[:2]
    output.warn(f"serving on http{'s' if tls else ''}://{f'[{host}]' if ':' in host else host}:{port}")
    try:
        with Signals(SIGNALS, leave):
            await server.run([found])
    finally:
        await app.aclose()


def _metrics_of(app: App) -> Sequence[Route]:
    from fencerow.metrics import Metrics
    from fencerow.web.gateway.metrics import metrics_route

    return (metrics_route(Metrics(app)),)


def refuse_bare(address: Address, *, secured: bool) -> None:
    """Refuse to send tokens through a network in plain text.

    Raises:
        ConfigError: the address is not this machine's own, and nothing encrypts.
    """
    if secured or ipaddress.ip_address(address.host).is_loopback:
        return
    raise ConfigError(
        f"--bind {address.host}:{address.port} would serve plain HTTP to a network",
        "tokens and payloads could be read on their way",
        "give --tls-cert and --tls-key, or --behind-proxy where a proxy before it speaks TLS",
    )


def _tls(cert: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """What a certificate and its key make.

    Raises:
        ConfigError: one of the two is missing, or they cannot be used.
    """
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        raise ConfigError(
            "--tls-cert and --tls-key go together", "one of them is missing", "give both, or neither"
        )
    return context_of(cert, key)
