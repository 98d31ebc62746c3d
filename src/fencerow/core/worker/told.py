"""What hints told of since the claimer asked the database: an answer that was on its way knows nothing of it."""

from __future__ import annotations

import math

from fencerow.core.store.claims import Mark
from fencerow.core.worker.heads import Key, earlier, key_of


class Told:
    """Where the first job lies that a hint told of, of each lane, and when the last hint came."""

    def __init__(self) -> None:
        self._marks: dict[Key, tuple[Mark, float]] = {}

    def note(self, mark: Mark, now: float) -> None:
        """A hint came."""
        told, told_at = self._marks.get(key_of(mark), (None, now))
        self._marks[key_of(mark)] = earlier(mark, told), max(now, told_at)

    def keep(self, since: float) -> None:
        """What came since then is to be looked at behind the next answer, whenever that is asked for."""
        self._marks = {key: (mark, math.inf) for key, (mark, at) in self._marks.items() if at >= since}

    def missed(self, since: float) -> list[Mark]:
        """An answer came to what was asked then: what it may not know of. Nothing is kept."""
        missed = [mark for mark, at in self._marks.values() if at >= since]
        self._marks.clear()
        return missed
