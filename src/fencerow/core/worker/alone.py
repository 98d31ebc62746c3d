"""A suspect that cannot run in a child process runs alone in its worker, if it can: then a death is its own doing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

LOOK_S = 0.02


class Alone:
    """Counts what runs in this process, and keeps the rest away while one job has it for itself. On the loop only."""

    def __init__(self) -> None:
        self._beside = 0
        self._taken = False

    @property
    def is_taken(self) -> bool:
        """Whether nothing else may start now, and nothing should be claimed."""
        return self._taken

    @property
    def is_busy(self) -> bool:
        """Whether anything runs."""
        return self._beside > 0

    def enter(self) -> Place:
        """Something starts beside the others."""
        self._beside += 1
        return Place(self._left)

    async def take(self, within_s: float, unwanted: Callable[[], bool]) -> Place | None:
        """Wait until nothing else runs; None if that takes too long, or somebody else was first."""
        if self._taken:
            return None
        self._taken = True
        deadline = time.monotonic() + within_s
        try:
            while self._beside and not unwanted() and time.monotonic() < deadline:  # noqa: ASYNC110
                await asyncio.sleep(LOOK_S)
        except BaseException:
            self._taken = False
            raise
        self._taken = self._beside == 0
        return Place(self._freed) if self._taken else None

    def _freed(self) -> None:
        self._taken = False

    def _left(self) -> None:
        self._beside -= 1


class Place:
    """The place of one that runs, beside others or alone."""

    __slots__ = ("_left",)

    def __init__(self, left: Callable[[], None]) -> None:
        self._left: Callable[[], None] | None = left

    def leave(self) -> None:
        """It runs no more, or was given up. May be repeated."""
        if self._left is not None:
            left, self._left = self._left, None
            left()
