"""The dormant chores of one worker: whether there is something for any of them goes into one statement."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from fencerow.core.background.dormant import Dormant
from fencerow.db.beat import by_beat
from fencerow.db.engine import Engine
from fencerow.db.imprint import LastImprint
from fencerow.db.queries import Query
from fencerow.db.run import Statement, Steps, first_column, operation

NOBODY_S = 60.0  # the pause where nobody sleeps


@operation(alone=True, repeatable=True, writes="", prepared=True)
def which_are_used(asked: Query) -> Steps[list[str]]:
    """The names of those queries that have a row."""
    return first_column((yield Statement(asked.name, {}, asked)))


class Sleepers:
    """Those that have nothing to do yet; one loop ticks for all of them. Used on the event loop only.

    Each for which there is something is roused: it is asleep no more. `roused` is called with it.
    """

    def __init__(self, roused: Callable[[Dormant], None]) -> None:
        self._roused = roused
        self._asleep: list[Dormant] = []
        self._seen = defaultdict[Engine, LastImprint](LastImprint)

    def add(self, dormant: Dormant) -> None:
        """It sleeps from now on."""
        self._asleep.append(dormant)

    def dismiss(self, dormant: Dormant) -> None:
        """Nobody looks for it any more."""
        self._asleep = [each for each in self._asleep if each is not dormant]

    async def tick(self) -> float:
        """Look for all of them; returns the pause of the one that looks most often."""
        asleep = tuple(self._asleep)
        wanted = {each for each in asleep if each.is_wanted()}
        for engine in {each.engine() for each in asleep if each not in wanted}:
            wanted |= await self._with_rows(engine, [each for each in asleep if each.engine() is engine])
        for each in asleep:
            each.looked_at()
            if each in wanted and each in self._asleep:
                self.dismiss(each)
                each.rouse()
                self._roused(each)
        now = time.monotonic()
        return by_beat(now, min((each.every_s for each in self._asleep), default=NOBODY_S)) - now

    async def _with_rows(self, engine: Engine, asleep: Sequence[Dormant]) -> set[Dormant]:
        """Those whose wings have rows."""
        imprint, now = engine.imprint(), time.monotonic()
        if self._seen[engine].is_still(imprint):
            return set()
        names = sorted({each.used for each in asleep})
        found = await engine.arun(which_are_used(_asking(engine, names)))
        self._seen[engine].note(imprint, now)
        return {each for each in asleep if each.used in found}


def _asking(engine: Engine, names: Iterable[str]) -> Query:
    """One query with a row for each of these that has one. None of them takes a parameter."""
    parts = []
    for name in names:
        (text,) = engine.queries[name].statements
        parts.append(f"SELECT '{name}' WHERE EXISTS ({text})")
    return Query("which_are_used", ("\nUNION ALL\n".join(parts),), ())
