"""What the event loop runs just now: told by the loop at each step of a handler, read by the thread that watches it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from fencerow.core.worker.attempt import Attempt


class OnLoop:
    """The step that is under way, if a handler's is. One for each worker; written on its event loop only."""

    __slots__ = ("attempts", "since")

    def __init__(self) -> None:
        self.attempts: tuple[Attempt, ...] = ()  # those that the call of the handler works for
        self.since = 0.0  # monotonic; when the step began

    def step(
        self, attempts: tuple[Attempt, ...], deadline: float, do: Callable[..., Any], *given: Any
    ) -> Any:
        """Take one step of a call: up to where it waits, or to its end. `deadline` is the first of its attempts'.

        Attempts whose handler kept the loop itself beyond their deadline `overran`: nothing could end them in time.
        """
        self.attempts, self.since = attempts, time.monotonic()
        try:
            return do(*given)
        finally:
            self.attempts = ()
            if self.since <= deadline < time.monotonic():
                for attempt in attempts:
                    attempt.overran = attempt.deadline < time.monotonic()
