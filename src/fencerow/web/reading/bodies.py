"""The bytes that the bodies of all requests hold together, from the first that came to the end of the request.

Small bodies are free, so who sends little is served however much others hold. When all is held, the body that has been
coming for longest is given up; where none has been for a while, the one that wants more is refused.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Final

from fencerow.web.errors import TooManyRequests
from fencerow.web.settings import WebSettings

FREE_BYTES: Final = 16 * 1024  # of each body
SETTLED_S: Final = 1.0  # a body that has been coming for less is not given up
RETRY_S: Final = 1.0


class Bodies:
    """All bodies of one gateway: `bytes_max` together. For one event loop."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._coming: dict[Body, None] = {}  # not whole yet, the oldest first
        self.held = 0  # bytes

    @staticmethod
    def of(settings: WebSettings) -> Bodies:
        """As the settings say, and never so few that the largest body could not come."""
        return Bodies(max(settings.web_bodies_bytes_max, settings.web_body_bytes_max))

    def body(self) -> Body:
        """Room for one more, to be left by `with` when its request has ended."""
        return Body(self)

    def begun(self, body: Body) -> None:
        self._coming[body] = None

    def whole(self, body: Body) -> None:
        self._coming.pop(body, None)

    def hold(self, body: Body, more: int) -> None:
        self.held += more
        while self.held > self._bytes_max:
            oldest = next((each for each in self._coming if each is not body), None)
            if oldest is None or not oldest.is_settled:
                raise _full(self._bytes_max)
            oldest.give_up()


class Body:
    """What one body holds. `is_given_up`: others needed its room."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self._limit: asyncio.Timeout | None = None
        self._began = 0.0
        self._held = 0
        self.is_given_up = False

    @property
    def is_settled(self) -> bool:
        """Whether it has been coming for so long that it may be given up."""
        return asyncio.get_running_loop().time() - self._began >= SETTLED_S

    def begin(self, limit: asyncio.Timeout) -> None:
        """It comes within this limit, which is over at once when it is given up."""
        self._limit, self._began = limit, asyncio.get_running_loop().time()
        self._bodies.begun(self)

    def has(self, size: int) -> None:
        """So many bytes of it have come.

        Raises:
            TooManyRequests: there is no room for them, and no other body to give up.
        """
        more = max(0, size - FREE_BYTES) - self._held
        self._held += more
        if more:
            self._bodies.hold(self, more)

    def is_whole(self) -> None:
        """All has come: it is served now, and not given up any more."""
        self._bodies.whole(self)

    def give_up(self) -> None:
        """Let it come no further, and count it no more."""
        assert self._limit is not None
        self.is_given_up = True
        self._limit.reschedule(asyncio.get_running_loop().time())
        self.leave()

    def leave(self) -> None:
        """Give back what it holds. It may be repeated."""
        self._bodies.whole(self)
        self._bodies.held -= self._held
        self._held = 0

    def __enter__(self) -> Body:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.leave()


def _full(bytes_max: int) -> TooManyRequests:
    return TooManyRequests(
        f"the bodies of all requests hold {bytes_max} bytes",
        "`web_bodies_bytes_max` sets the limit",
        "wait as Retry-After says",
        retry_after_s=RETRY_S,
        status=503,
        closes=True,
    )
