"""A connection of uvicorn's, with bounds on how long it waits for its caller.

uvicorn bounds neither how long a request's headers may take, nor how long a connection may say nothing at all, nor how
long the rest of a body may come after its answer, nor how long an answer may wait to be read. So hundreds of callers
that send a byte now and then, or read nothing of what they asked for, would keep all places.
"""

from __future__ import annotations

import asyncio

import h11
from starlette.requests import Request
from starlette.types import Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from fencerow.web.errors import TooManyRequests
from fencerow.web.gateway.answering import refusal_of
from fencerow.web.gateway.chain import origin_of
from fencerow.web.gateway.places import Places, Stage

WRITE_BYTES_MIN = 32 * 1024


class Bounded(H11Protocol):
    """A connection that does not wait for its caller for ever.

    A request must have all its headers within `web_headers_timeout_s` of its begin; a body whose request was answered
    already has as long to end, and no more than `web_body_bytes_max`. Of an answer that waits to be read, all or
    WRITE_BYTES_MIN must be taken in each `web_write_timeout_s`.
    """

    def __init__(self, config: Config, state: ServerState, places: Places) -> None:
        super().__init__(config, state, {})
        self._places = places
        self._settings = places.settings
        self._until: asyncio.TimerHandle | None = None
        self._awaited = ""
        self._rest = 0  # bytes that came after the answer
        self._unread: UnreadClock | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._unread = UnreadClock(transport, self.loop, self._places)
        # `pause_writing` when a byte has to wait, not only at 64 KiB. At 0 asyncio's TLS would pause for ever.
        transport.set_write_buffer_limits(high=1)
        if not self._places.enter(self):
            self.app = self._full
        self._expect()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread is not None:
            self._unread.begin()
            self._places.unread(self, self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.end()
            self._places.read(self)

    def data_received(self, data: bytes) -> None:
        answered = self._is_answered and self.conn.their_state is h11.SEND_BODY
        self._rest = self._rest + len(data) if answered else 0
        super().data_received(data)
        if self._rest > self._settings.web_body_bytes_max:
            self._late("it went on to send a body that was refused")
        self._expect()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        if self._unread is not None:
            self._unread.end()
        self._places.leave(self)
        super().connection_lost(exc)

    def cut(self) -> None:
        """End it at once; `close` would wait for its reader."""
        self._forget()
        self.transport.abort()

    @property
    def _asked(self) -> RequestResponseCycle | None:
        """The request that came last, if one has."""
        return self.cycle

    @property
    def _is_answered(self) -> bool:
        return self._asked is not None and self._asked.response_complete

    def _expect(self) -> None:
        """Start the clock where a request is to come, has begun, or has a rest; stop it where it is served."""
        their = self.conn.their_state
        is_idle = their is h11.IDLE and self._is_answered and not self.conn.trailing_data[0]
        if is_idle:
            self._forget()  # uvicorn's own clock ends it
        elif their is h11.IDLE:
            self._await(f"its headers took longer than {self._settings.web_headers_timeout_s:g} s")
        elif their is h11.SEND_BODY and self._is_answered:
            self._await("a body that was refused did not end")
        else:
            self._forget()
        is_coming = their in (h11.IDLE, h11.SEND_BODY)
        self._places.move(self, Stage.IDLE if is_idle else Stage.COMING if is_coming else Stage.SERVED)

    def _await(self, what: str) -> None:
        if self._awaited != what:
            self._forget()
            self._awaited = what
            self._until = self.loop.call_later(self._settings.web_headers_timeout_s, self._late, what)

    def _forget(self) -> None:
        self._awaited = ""
        if self._until is not None:
            self._until.cancel()
            self._until = None

    def _late(self, why: str) -> None:
        if not self.transport.is_closing():
            self._places.cuts.note(why)
            self.cut()

    async def _full(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Instead of the gateway, for a connection without a place."""
        error = TooManyRequests(
            "the gateway has as many connections as it may",
            "`web_connections_max` sets the limit",
            "wait as Retry-After says",
            status=503,
            closes=True,
        )
        await refusal_of(error, origin_of(Request(scope), self._settings), "none")(scope, receive, send)


class UnreadClock:
    """The clock of what waits in a connection to be read: it ends a connection whose caller takes too little."""

    def __init__(
        self, transport: asyncio.WriteTransport, loop: asyncio.AbstractEventLoop, places: Places
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._places = places
        self._timer: asyncio.TimerHandle | None = None
        self._waiting = 0  # bytes, when the clock was looked at last

    def begin(self) -> None:
        """From now on something waits."""
        if self._timer is None:
            self._waiting = self._transport.get_write_buffer_size()
            self._timer = self._loop.call_later(self._places.settings.web_write_timeout_s, self._look)

    def end(self) -> None:
        """Nothing waits any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        left = self._transport.get_write_buffer_size()
        if self._waiting - left < WRITE_BYTES_MIN:
            limit_s = self._places.settings.web_write_timeout_s
            self._places.cuts.note(f"it took less than {WRITE_BYTES_MIN} bytes of an answer in {limit_s:g} s")
            self._transport.abort()  # `close` would wait for the reader
        else:
            self.begin()
