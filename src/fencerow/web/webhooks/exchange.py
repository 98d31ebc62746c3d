"""One request and its answer by HTTP/1.1, over a connection that is there. h11 knows the protocol."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

import h11

from fencerow.core.errors import InvalidInput
from fencerow.version import __version__
from fencerow.web.webhooks.errors import FailedBy, PostFailed
from fencerow.web.webhooks.urls import Target

HEAD_BYTES_MAX: Final = 16 * 1024  # of an answer: its status and its headers
BODY_BYTES_MAX: Final = 64 * 1024  # of an answer; what follows is not read
KEPT_BYTES: Final = 1024
INTERIM_MAX: Final = 8  # answers 1xx before the one that counts
READ_BYTES: Final = 8 * 1024

# They say how the message is framed and where it goes: ours only.
OURS: Final = frozenset(
    (
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "accept-encoding",
        "te",
        "trailer",
        "upgrade",
        "expect",
    )
)


def request_of(target: Target, headers: Mapping[str, str], body: bytes) -> h11.Request:
    """The head of the POST.

    Raises:
        InvalidInput: one of these headers cannot be sent.
    """
    given = {name.lower(): value for name, value in headers.items()}
    usual = {"user-agent": f"Fencerow/{__version__}", "content-type": "application/json"}
    ours = {
        "host": target.authority,
        "connection": "close",
        "accept-encoding": "identity",
        "content-length": str(len(body)),
    }
    try:
        if OURS & given.keys():
            raise ValueError("it is one of those that Fencerow sets")
        return h11.Request(method="POST", target=target.path, headers=list((usual | given | ours).items()))
    except (h11.LocalProtocolError, ValueError):
        raise InvalidInput(
            f"the headers of a webhook cannot be sent: {', '.join(sorted(given))[:200]}",
            f"names and values of HTTP in ASCII are expected, on one line, and none of {', '.join(sorted(OURS))}",
            "take out what does not fit",
        ) from None  # its text has the value, which may be a password


class PostExchange:
    """The POST and its answer: `head`, then `rest`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES_MAX)

    async def head(self, request: h11.Request, body: bytes) -> h11.Response:
        """Send all of it, and wait for the status.

        Raises:
            PostFailed: what comes is no answer, or too large a head of one.
            OSError: the connection fails.
        """
        events = (request, h11.Data(data=body), h11.EndOfMessage())
        # Not drained: who answers before it has read everything is heard at once.
        self._writer.write(b"".join(self._http.send(event) or b"" for event in events))
        interim = 0
        while interim <= INTERIM_MAX:
            event = self._event()
            if isinstance(event, h11.Response):
                return event
            if isinstance(event, h11.InformationalResponse):
                interim += 1
            elif not await self._read():
                raise PostFailed.by(FailedBy.RESET)
        raise PostFailed.by(FailedBy.PROTOCOL)

    async def rest(self, deadline: float, kept_bytes: int = KEPT_BYTES) -> tuple[bytes, bool]:
        """The start of the answer's body, and whether that is all of it. Whatever befalls it changes nothing of the
        status, which is there."""
        kept, is_longer, is_whole = bytearray(), False, False
        unread = max(BODY_BYTES_MAX, kept_bytes)
        try:
            async with asyncio.timeout_at(deadline):
                while True:
                    event = self._event()
                    if isinstance(event, h11.Data):
                        is_longer = is_longer or len(event.data) > kept_bytes - len(kept)
                        kept += event.data[: kept_bytes - len(kept)]
                    elif event is h11.NEED_DATA and unread > 0:
                        unread -= await self._read()
                    else:
                        is_whole = isinstance(event, h11.EndOfMessage) and not is_longer
                        break
        except (OSError, PostFailed):
            pass
        return bytes(kept), is_whole

    def _event(self) -> object:
        try:
            return self._http.next_event()
        except h11.RemoteProtocolError as error:
            too_large = error.error_status_hint == 431
        raise PostFailed.by(FailedBy.TOO_LARGE if too_large else FailedBy.PROTOCOL)

    async def _read(self) -> int:
        data = await self._reader.read(READ_BYTES)
        self._http.receive_data(data)
        return len(data)


def retry_after_s(headers: Iterable[tuple[bytes, bytes]]) -> float | None:
    """How long the receiver wants to be left alone, from the first header Retry-After: seconds, or a date."""
    text = next((value for name, value in headers if name == b"retry-after"), b"").decode("ascii", "replace")
    if text.isdecimal():
        return float(text[:12])
    try:
        when = parsedate_to_datetime(text)
        return max(0.0, when.replace(tzinfo=when.tzinfo or UTC).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
