"""What the event loop runs just now: told by the loop at each step of a handler, read by the thread that watches it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from fencerow.core.worker.attempt import Attempt


class Call:
    """One call of a handler: the attempts it works for, and the deadline of the first of them.

    `overran`: it was the handler itself that kept the loop beyond the deadline, so that nothing could end it in time.
    """

    __slots__ = ("attempts", "deadline", "overran")

    def __init__(self, attempts: Sequence[Attempt]) -> None:
        self.attempts = tuple(attempts)
        self.deadline = min((each.deadline for each in attempts), default=math.inf)
        self.overran = False


class OnLoop:
    """The step that is under way, if a handler's is. One for each worker; written on its event loop only."""

    __slots__ = ("call", "since")

    def __init__(self) -> None:
        self.call: Call | None = None
        self.since = 0.0  # monotonic; when the step began

    def step(self, call: Call, do: Callable[..., Any], *given: Any) -> Any:
        """Take one step of the call: up to where it waits, or to its end."""
        self.call, self.since = call, time.monotonic()
        try:
            return do(*given)
        finally:
            self.call = None
            if self.since <= call.deadline < time.monotonic():
                call.overran = True
                for attempt in call.attempts:
                    attempt.overran = attempt.deadline < time.monotonic()
