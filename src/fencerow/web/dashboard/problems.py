"""What the doctor finds, kept for all pages of the process: it is looked at now and then, never for each page."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fencerow.core.finding import Finding, Level

log = logging.getLogger("fencerow.web")

KEPT_S = 60.0
WAIT_S = 2.0  # for the first look; a page that comes sooner says that it is under way
ORDER = (Level.FAIL, Level.WARN, Level.INFO, Level.OK)


@dataclass(frozen=True, slots=True)
class ProblemsFound:
    """What was found, the worst first, and when (`time.time`); None: the first look is under way."""

    findings: Sequence[Finding]
    at_s: float

    @property
    def wrong(self) -> Sequence[Finding]:
        """What asks for somebody."""
        return [each for each in self.findings if each.level in (Level.FAIL, Level.WARN)]


class Problems:
    """Looks in a thread, one look at a time, and keeps what it found for a minute. For one event loop."""

    def __init__(self, examine: Callable[[], Sequence[Finding]], *, kept_s: float = KEPT_S) -> None:
        self._examine = examine
        self._kept_s = kept_s
        self._found: ProblemsFound | None = None
        self._looking: asyncio.Task[None] | None = None

    async def found(self, *, wait_s: float = WAIT_S) -> ProblemsFound | None:
        """What the last look found. It begins another one if that is old, and waits for the first a little."""
        # Below 0 the clock was set back meanwhile.
        if self._found is None or not 0 <= time.time() - self._found.at_s <= self._kept_s:
            self._begin()
        if self._found is None and self._looking is not None:
            await asyncio.wait([self._looking], timeout=wait_s)
        return self._found

    async def aclose(self) -> None:
        """Wait for the look that is under way: a thread cannot be broken off."""
        if self._looking is not None:
            await asyncio.wait([self._looking])

    def _begin(self) -> None:
        if self._looking is None or self._looking.done():
            self._looking = asyncio.ensure_future(self._look())

    async def _look(self) -> None:
        try:
            findings = await asyncio.to_thread(self._examine)
        except Exception as error:  # the page says that nothing is known, and it is tried again
            log.warning("the doctor could not look for the dashboard: %s", error)
            return
        self._found = ProblemsFound(sorted(findings, key=lambda each: ORDER.index(each.level)), time.time())
