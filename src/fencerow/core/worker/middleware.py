"""What users wrap around the calls of their handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fencerow.core.worker.follow_ups import AsStored

RunMiddleware = Callable[[Any, Callable[[], Awaitable[Any]]], Awaitable[Any]]
TogetherMiddleware = Callable[[Sequence[Any], Callable[[], Awaitable[None]]], Awaitable[None]]


@dataclass(frozen=True)
class Middleware:
    """Around the runs of single jobs, and around calls that run several together. The first is the outermost.

    `as_stored` makes of a handler's follow-up what is stored, with what stands around submits.
    """

    run: Sequence[RunMiddleware] = ()
    batch: Sequence[TogetherMiddleware] = ()
    as_stored: AsStored | None = None


NO_MIDDLEWARE = Middleware()
