"""Ends that were never written into their line, and holds that reach too far, found by a slow look.

The statement that ends a job writes its end. But somebody may have removed a job by hand, or moved it to the finished
ones, and its line would stand still for ever.
"""

from __future__ import annotations

import logging

from fencerow.core.chore import Chore, Site
from fencerow.core.model.wakeup import encode_ended
from fencerow.db.text import amount
from fencerow.handovers.handovers import mend

log = logging.getLogger("fencerow.worker.handovers")

LOOK_EVERY_S = 30.0
LOOK_ROWS = 1_000


class Mender(Chore):
    """One look after another, some rows in each."""

    name = "handovers"

    def __init__(self, site: Site) -> None:
        self._site = site
        self._after = 0

    async def tick(self) -> float:
        """Look at some rows; returns the pause until the next look."""
        mended = await self._site.engine.arun(mend(self._after, limit=LOOK_ROWS))
        self._after = mended.after
        if mended.ids:
            log.warning(
                "%s had not been handed over: somebody moved or removed the jobs by hand",
                amount(len(mended.ids), "end"),
            )
            self._site.telemetry.counters.add("handovers_mended", len(mended.ids))
            self._site.engine.wake(encode_ended(mended.ids))
        return LOOK_EVERY_S if not mended.after else 1.0
