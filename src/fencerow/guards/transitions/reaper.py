"""The reaper of a user's table, as something that a worker does beside its jobs."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from fencerow.core.chore import Chore
from fencerow.db.text import amount
from fencerow.guards.transitions.verbs import Moves

log = logging.getLogger("fencerow.transitions")


class Reaper(Chore):
    """Sweeps a table again and again: `app.add_chore(documents.reaper())`.

    In every worker at once, with no leader: its moves are guarded by their own statements. Its moves are
    logged, because a reaper with much to do is a sign that something else is broken.
    """

    def __init__(self, table: str, swept: Sequence[Moves], every_s: float, count: int) -> None:
        self.name = f"reaper of {table}"
        self._swept = swept
        self._every_s = every_s
        self._count = count

    async def tick(self) -> float:
        """One sweep; returns the seconds until the next, none if there is more to do."""
        more = False
        for moves in self._swept:
            reaped = await moves.areap(count=self._count)
            more = more or reaped.more
            for move, rows in reaped.moved.items():
                if rows:
                    log.info("%s: %s moved %s", self.name, move, amount(len(rows), "row"))
        return 0.0 if more else self._every_s
