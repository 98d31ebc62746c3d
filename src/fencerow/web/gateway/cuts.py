"""Callers who were cut off or refused, as the log is told of them: a line for each reason, however many they were."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Final

log = logging.getLogger("fencerow.web")

TOLD_S: Final = 60.0

What = tuple[int, str, str]  # level, how, why


class Cuts:
    """Tells of the first at once, and of those who follow within a minute together. For one event loop."""

    def __init__(self) -> None:
        self._more: Counter[What] = Counter()
        self._timers: dict[What, asyncio.TimerHandle] = {}

    def note(self, why: str, level: int = logging.INFO, how: str = "cut off") -> None:
        """A caller was cut off for this reason, or what `how` says."""
        what = (level, how, why)
        if what in self._timers:
            self._more[what] += 1
            return
        log.log(level, "a caller was %s: %s", how, why)
        self._timers[what] = asyncio.get_running_loop().call_later(TOLD_S, self._tell, what)

    def close(self) -> None:
        """Tell what is not told yet."""
        for what, timer in list(self._timers.items()):
            timer.cancel()
            self._tell(what)

    def _tell(self, what: What) -> None:
        level, how, why = what
        del self._timers[what]
        if more := self._more.pop(what, 0):
            log.log(level, "%d more callers were %s: %s", more, how, why)
