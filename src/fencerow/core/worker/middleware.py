"""What an application wraps around its runs: middleware of single jobs, and of calls that run several together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fencerow.core.worker.context import Job

RunMiddleware = Callable[[Job, Callable[[], Awaitable[Any]]], Awaitable[Any]]
TogetherMiddleware = Callable[[Sequence[Any], Callable[[], Awaitable[None]]], Awaitable[None]]


@dataclass(frozen=True)
class Middleware:
    """The first of each kind is the outermost."""

    run: Sequence[RunMiddleware] = ()
    batch: Sequence[TogetherMiddleware] = ()


NO_MIDDLEWARE = Middleware()
