"""Where a command listens for browsers and callers, with which certificate, and until when."""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import signal
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fencerow.app import App
from fencerow.cli.signals import Signals
from fencerow.command import output
from fencerow.command.patience import reach_patiently
from fencerow.core.config import CoreConfig
from fencerow.core.errors import ConfigError, MissingExtra
from fencerow.db.url import PostgresUrl
from fencerow.supervisor.probes import ProbeAddress, parsed_address, waiting_at
from fencerow.web.gateway.certificate import context_of

if TYPE_CHECKING:
    from fencerow.web.gateway.server import Serves

F = TypeVar("F", bound=Callable[..., Any])
SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class ServedAt:
    """What the options say. `secured`: browsers and callers come over TLS, ours or that of a proxy before us."""

    address: ProbeAddress
    tls: ssl.SSLContext | None
    secured: bool

    def patiently(self, bound: socket.socket, url: PostgresUrl, config: CoreConfig) -> None:
        """Wait for a server that starts; probes are answered at this socket meanwhile. See `reach_patiently`."""
        reach_patiently(url, config, meanwhile=lambda: waiting_at(bound, self.tls))

    def place(self, host: str, port: int) -> str:
        """The beginning of addresses there."""
        return f"http{'s' if self.tls else ''}://{f'[{host}]' if ':' in host else host}:{port}"


def door_options(port: str) -> Callable[[F], F]:
    """--bind, --tls-cert, --tls-key and --behind-proxy; the command takes them as `at`, a `ServedAt`."""

    def with_options(command: F) -> F:
        @functools.wraps(command)
        def opened(
            *args: Any,
            bind: str,
            tls_cert: Path | None,
            tls_key: Path | None,
            behind_proxy: bool,
            **more: Any,
        ) -> Any:
            return command(*args, at=served_at(bind, tls_cert, tls_key, behind_proxy=behind_proxy), **more)

        found: Any = opened
        for option in reversed(_options(port)):
            found = option(found)
        made: F = found
        return made

    return with_options


def _options(port: str) -> Sequence[Callable[[Any], Any]]:
    file = click.Path(path_type=Path)
    return (
        click.option(
            "--bind",
            metavar="[ADDRESS:]PORT",
            default=port,
            show_default=True,
            help="Listen there; without an address, for this machine only.",
        ),
        click.option("--tls-cert", type=file, metavar="FILE", help="The certificate chain, in PEM."),
        click.option("--tls-key", type=file, metavar="FILE", help="Its private key, in PEM."),
        click.option(
            "--behind-proxy",
            is_flag=True,
            help="A proxy before it speaks TLS; without this or a certificate, it listens to this machine only.",
        ),
    )


def served_at(bind: str, cert: Path | None, key: Path | None, *, behind_proxy: bool) -> ServedAt:
    """What the options say.

    Raises:
        InvalidInput: the address is none. ConfigError: it is not this machine's own, and nothing encrypts; or the
            certificate and its key cannot be used.
    """
    address = parsed_address(bind, "--bind")
    tls = tls_of(cert, key)
    secured = tls is not None or behind_proxy
    _refuse_bare(address, secured=secured)
    return ServedAt(address, tls, secured)


async def serve_until_told(
    app: App,
    at: ServedAt,
    bound: socket.socket,
    make: Callable[[], Serves],
    banner: Callable[[str], Sequence[str]],
) -> None:
    """Serve at this socket until SIGTERM or SIGINT, then close the app. `banner`: what is told, of the beginning of the
    addresses.

    Raises:
        MissingExtra: what it needs is not installed.
    """
    try:
        from fencerow.web.gateway.server import Server, settle
        from fencerow.web.settings import WebSettings

        served = make()
    except ImportError as error:
        raise MissingExtra(
            f"to serve over HTTP {error.name} is needed",
            "it comes with an extra",
            "pip install 'fencerow[web]'",
        ) from None
    server = Server(served, WebSettings.of(app.config), tls=at.tls)
    loop = asyncio.get_running_loop()
    await settle()
    for line in banner(at.place(*bound.getsockname()[:2])):
        output.warn(line)
    try:
        with Signals(SIGNALS, lambda _name: _leave(loop, server.leave)):
            await server.run([bound])
    finally:
        await app.aclose()


def _leave(loop: asyncio.AbstractEventLoop, leave: Callable[[], None]) -> None:
    loop.call_soon_threadsafe(leave)


def _refuse_bare(address: ProbeAddress, *, secured: bool) -> None:
    """Refuse to send tokens through a network in plain text."""
    if secured or ipaddress.ip_address(address.host).is_loopback:
        return
    raise ConfigError(
        f"--bind {address.host}:{address.port} would serve plain HTTP to a network",
        "tokens and payloads could be read on their way",
        "give --tls-cert and --tls-key, or --behind-proxy where a proxy before it speaks TLS",
    )


def tls_of(cert: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """What a certificate and its key make; None where neither is given.

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
