"""The body of one request: refused by what its headers say where that is enough, else read within bounds.

Whoever refuses does not read the rest, so the answer must say `connection: close` (`error.closes`).
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol

from fencerow.web.errors import InvalidRequest, RequestTooLarge, RequestTooSlow, UnsupportedBody
from fencerow.web.reading.bodies import Bodies, Body
from fencerow.web.settings import WebSettings

PACE_BYTES_PER_S = (
    500  # a body that comes more slowly than this, after half of its time, holds a place for nothing
)
STEPS_MAX = 50  # moves of the limit: each leaves a timer, as long as the loop does not turn
DIGITS_MAX = 15
MEDIA_LENGTH_MAX = 255
JSON_TYPE = re.compile(r"application/(?:[a-z0-9!#$&^_.+-]+\+)?json", re.ASCII)
PARAMETER = re.compile(r""";\s*+(?:([^\s=;"]++)=("[^"\\]*+"|[^\s";]++)\s*+)?""", re.ASCII)

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Headers(Protocol):
    """The headers of a request, as Starlette has them."""

    def getlist(self, key: str) -> list[str]: ...


class Gone(Exception):
    """The client hung up before its request was whole. Nobody is there to read an answer."""


async def body_by_settings(
    receive: Receive, headers: Headers, settings: WebSettings, room: Body, *, within_s: float = math.inf
) -> bytes:
    """`body_of` within the bounds of the settings. `within_s`: of an endpoint that has less time.

    Raises: as `body_of`.
    """
    return await body_of(
        receive,
        headers,
        bytes_max=settings.web_body_bytes_max,
        timeout_s=min(settings.web_body_timeout_s, within_s),
        room=room,
    )


async def body_of(
    receive: Receive, headers: Headers, *, bytes_max: int, timeout_s: float, room: Body | None = None
) -> bytes:
    """All bytes of a request's body, whose headers say that it is JSON; empty if it has none.

    It must come whole within `timeout_s`, and after half of that time no slower than PACE_BYTES_PER_S. `room`: what it
    may hold beside others. It may be cancelled: nothing is left behind but what it holds there.

    Raises:
        RequestTooLarge: it has more than `bytes_max`, by its headers or by what came.
        RequestTooSlow: it did not come in time, or was slow while others needed its room.
        TooManyRequests: there is no room for it beside the others.
        UnsupportedBody: it is compressed, or no JSON in UTF-8 by its headers.
        InvalidRequest: its length is told in a way that may be understood in two.
        Gone: the client hung up.
    """
    told = _told_length(headers)
    if told is not None and told > bytes_max:
        raise _too_large(bytes_max)
    if told:
        check_media(headers)
    clock = asyncio.get_running_loop().time
    began = clock()
    body = bytearray()
    room = room or Bodies(bytes_max).body()
    try:
        async with asyncio.timeout_at(began + timeout_s / 2) as limit:
            room.begin(limit)
            while await _one_more(receive, None if told else headers, body, bytes_max):
                room.has(len(body))
                due = began + min(timeout_s, timeout_s / 2 + len(body) / PACE_BYTES_PER_S)
                if clock() >= due:  # also of a sender that never lets the loop turn
                    raise TimeoutError
                if due - (limit.when() or began) > timeout_s / STEPS_MAX:
                    limit.reschedule(due)
            room.has(len(body))
    except TimeoutError:
        raise (_given_up() if room.is_given_up else _too_slow(timeout_s)) from None
    room.is_whole()
    if told is not None and told != len(body):
        raise _unclear(f"the body has {len(body)} bytes, and Content-Length says {told}")
    return bytes(body)


async def _one_more(receive: Receive, unread: Headers | None, body: bytearray, bytes_max: int) -> bool:
    """Add the next part; whether more comes after it. `unread`: headers that nobody has judged yet."""
    message = await receive()
    if message["type"] != "http.request":
        raise Gone
    part: bytes = message.get("body", b"")
    if part and not body and unread is not None:
        check_media(unread)
    if len(body) + len(part) > bytes_max:
        raise _too_large(bytes_max)
    body += part
    return bool(message.get("more_body", False))


def check_media(headers: Headers) -> None:
    """Refuse a body that is no JSON by its headers. A type is demanded, because a foreign page can send a body without.

    Raises:
        UnsupportedBody: what was found, and what is taken.
    """
    encodings = headers.getlist("content-encoding")
    if any(each.strip().lower() != "identity" for each in encodings):
        raise UnsupportedBody(
            f"the body has the Content-Encoding {_shown(encodings)}",
            "a small one may become a huge one, so none is unpacked",
            "send it without compression",
        )
    types = headers.getlist("content-type")
    if len(types) != 1 or not _is_json(types[0].strip().lower()):
        raise UnsupportedBody(
            f"the body has the Content-Type {_shown(types)}" if types else "the body has no Content-Type",
            "JSON in UTF-8 is taken",
            "send `Content-Type: application/json`",
        )


def _is_json(media: str) -> bool:
    kind = JSON_TYPE.match(media)
    if kind is None or len(media) > MEDIA_LENGTH_MAX:
        return False
    rest = media[kind.end() :].lstrip()
    while rest:
        parameter = PARAMETER.match(rest)
        if parameter is None:
            return False
        name, value = parameter.groups()
        if name == "charset" and value.strip('"') not in ("utf-8", "utf8"):
            return False
        rest = rest[parameter.end() :]
    return True


def _told_length(headers: Headers) -> int | None:
    lengths = headers.getlist("content-length")
    if not lengths:
        return None
    # Two lengths are how one request is made to look like two: the proxy before us counted by the other one.
    if len(lengths) > 1 or headers.getlist("transfer-encoding"):
        raise _unclear("the length of the body is told twice")
    if not re.fullmatch(r"[0-9]+", lengths[0], re.ASCII):
        raise _unclear(f"the Content-Length is {_shown(lengths)}")
    return int(lengths[0]) if len(lengths[0]) <= DIGITS_MAX else 10**DIGITS_MAX


def _shown(values: list[str]) -> str:
    return ascii(", ".join(values))[:80]


def _unclear(what: str) -> InvalidRequest:
    return InvalidRequest(what, "its end must be clear", "let an HTTP client count it", closes=True)


def _too_large(bytes_max: int) -> RequestTooLarge:
    return RequestTooLarge(
        f"the body has more than {bytes_max} bytes",
        "`web_body_bytes_max` sets the limit",
        "send it in several requests, or a reference to it",
    )


def _too_slow(timeout_s: float) -> RequestTooSlow:
    return RequestTooSlow(
        f"the body did not come within {timeout_s:g} s, or slower than {PACE_BYTES_PER_S} bytes a second",
        "`web_body_timeout_s` sets the limit",
        "send it again, over a better connection or in several requests",
    )


def _given_up() -> RequestTooSlow:
    return RequestTooSlow(
        "the body was still coming when others needed its room",
        "all bodies together hold `web_bodies_bytes_max`, and it had been coming for longest",
        "send it again, over a better connection or in several requests",
    )
