"""How often open pages are looked at: the longer a look takes, the seldomer.

A look takes long where the database is busy, where it is large, or where this process has no processor. In each case
looking as often as before would take it away from the jobs.
"""

from __future__ import annotations

import asyncio
import time

LIVE_S = 2.0
SLOW_S = 10.0
PART = 1 / 10  # of the time may looks take
TOLD = 1.5  # times as long: pages say so


class Beat:
    """The pause between two rounds of looks: `live_s` at least, and 10 s at most. For one event loop."""

    def __init__(self, live_s: float) -> None:
        self._live_s = live_s
        self.every_s = live_s
        self._took_s = 0.0

    @property
    def slowed_s(self) -> float | None:
        """How often looks are made, where that is seldomer than they would be; else None."""
        return self.every_s if self.every_s > TOLD * self._live_s else None

    async def wait(self) -> float:
        """Wait until the next round; then by how many seconds it is late, because the event loop had no time."""
        due_s = time.monotonic() + self.every_s
        await asyncio.sleep(self.every_s)
        return max(0.0, time.monotonic() - due_s)

    def took(self, seconds: float) -> None:
        """A round took so long. One slow round among quick ones counts half."""
        self._took_s = (self._took_s + seconds) / 2
        self.every_s = min(max(self._live_s, self._took_s / PART), max(self._live_s, SLOW_S))
