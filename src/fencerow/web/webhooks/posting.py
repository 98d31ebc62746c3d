"""One POST of a webhook: to a checked address, within a time, with nothing told of what stands behind it.

The host is resolved once. All of its addresses are checked, and one of those is connected: the name is not asked for
again, so it cannot lead elsewhere meanwhile. It stays in the header Host, and the certificate must be its own.
Redirects are not followed, and variables as HTTPS_PROXY are not read.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import h11

from fencerow.web.webhooks.addresses import Address, Allowed, target_of
from fencerow.web.webhooks.errors import FailedBy, PostFailed, WebhookUrlRefused
from fencerow.web.webhooks.exchange import KEPT_BYTES, READ_BYTES, PostExchange, request_of, retry_after_s
from fencerow.web.webhooks.resolving import Resolve, addresses_of, by_system
from fencerow.web.webhooks.urls import Target

TRIED_MAX: Final = 4  # addresses of one host, one after the other


@dataclass(frozen=True, slots=True)
class ReceiverReply:
    """What a receiver answered. Redirects are not followed: 3xx is an answer as others."""

    status: int
    took_s: float
    retry_after_s: float | None  # what it asks for by the header Retry-After, however much that is
    body_start: bytes  # as many bytes as were asked for: the first 1,024, for the record
    is_whole: bool = True  # whether that is all of it


async def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    timeout_s: float,
    allow: Allowed,
    resolve: Resolve = by_system,
    tls: ssl.SSLContext | None = None,
    kept_bytes: int = KEPT_BYTES,
) -> ReceiverReply:
    """Send exactly these bytes, and return what was answered.

    `timeout_s` is for all of it, from the lookup of the name to the end of the answer, however slowly bytes drip. An
    answer counts once its status and headers are there; its body is read for the record, up to 64 KiB and that time.
    `kept_bytes`: how much of it is returned; where that is more, so much is read.

    Raises:
        PostFailed: there is no answer; `kind` says why. Its text names neither an address nor what a server said, and
            the error that caused it is dropped: both would tell who gave the URL what lies in our network.
        InvalidInput: a header cannot be sent.
    """
    loop = asyncio.get_running_loop()
    begun = loop.time()
    try:
        response, start, is_whole = await _exchanged(
            url, body, headers, allow, begun + timeout_s, resolve, tls, kept_bytes
        )
    except PostFailed as error:
        kind = error.kind
    except TimeoutError:
        kind = FailedBy.TIMEOUT
    except ssl.SSLError:
        kind = FailedBy.TLS
    except OSError:
        kind = FailedBy.RESET
    else:
        return ReceiverReply(
            response.status_code, loop.time() - begun, retry_after_s(response.headers), start, is_whole
        )
    raise PostFailed.by(kind, loop.time() - begun)  # outside of the handlers, so that it has no context


async def _exchanged(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    allow: Allowed,
    deadline: float,
    resolve: Resolve,
    tls: ssl.SSLContext | None,
    kept_bytes: int,
) -> tuple[h11.Response, bytes, bool]:
    target = _checked(url, allow)
    request = request_of(target, headers, body)
    async with asyncio.timeout_at(deadline):
        addresses = await addresses_of(target, resolve)
        if not allow.permits(target, addresses):
            raise PostFailed.by(FailedBy.REFUSED_ADDRESS)
        reader, writer = await _connected(target, addresses[:TRIED_MAX], deadline, tls)
    try:
        exchange = PostExchange(reader, writer)
        async with asyncio.timeout_at(deadline):
            response = await exchange.head(request, body)
        return response, *(await exchange.rest(deadline, kept_bytes))
    finally:
        writer.transport.abort()  # nothing waits for the other side's farewell


def _checked(url: str, allow: Allowed) -> Target:
    try:
        return target_of(url, allow)
    except WebhookUrlRefused as error:
        raise PostFailed.by(FailedBy.REFUSED_ADDRESS) from error


async def _connected(
    target: Target, addresses: Sequence[Address], deadline: float, tls: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the first of the addresses that takes one. Each has its share of the time that is left."""
    loop = asyncio.get_running_loop()
    context = None if target.http else tls or _usual_tls()
    kind = FailedBy.CONNECT
    for left, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
        try:
            async with asyncio.timeout((deadline - loop.time()) / left):
                return await asyncio.open_connection(
                    str(address),
                    target.port,
                    limit=READ_BYTES,
                    ssl=context,
                    server_hostname=None if context is None else target.host,
                )
        except TimeoutError:
            kind = FailedBy.TIMEOUT
        except ssl.SSLError:
            kind = FailedBy.TLS
        except OSError:
            kind = FailedBy.CONNECT
    raise PostFailed.by(kind)


@functools.cache
def _usual_tls() -> ssl.SSLContext:
    """Certificates are checked against those that the system trusts, or SSL_CERT_FILE names; TLS 1.2 at least."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
