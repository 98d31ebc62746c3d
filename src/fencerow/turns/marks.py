"""Behind which arrivals a worker looks for more. No I/O.

Arrivals that were taken stand in the index until the server may remove them, and that is not before the oldest snapshot
ends. Who looked from the beginning each time would walk over all of them. So it looks behind what it took some seconds
ago, and only now and then from the beginning: for what a transaction that was open for longer has left. On SQLite they
are gone at once, and their ids are given again: each look there begins at the beginning (sqlite/arrivals.sql).
"""

from __future__ import annotations

from collections import deque
from typing import Final

OPEN_S: Final = 5.0  # what a transaction that is open for less has left is found by each look
SHARE: Final = 10.0  # of its cost: the pause after a look at all


class ArrivalMark:
    """All times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._taken = deque[tuple[float, int]]()
        self._behind = 0
        self._began_s = self._all_at_s = 0.0

    def after(self, now_s: float) -> int:
        """Behind which arrival to look now; 0: at all."""
        while self._taken and self._taken[0][0] <= now_s - OPEN_S:
            self._behind = max(self._behind, self._taken.popleft()[1])
        self._began_s = now_s
        return 0 if now_s >= self._all_at_s else self._behind

    def looked_at_all(self, now_s: float) -> None:
        """That look began when `after` was asked, and is over."""
        self._all_at_s = now_s + max(1.0, SHARE * (now_s - self._began_s))

    def took(self, last: int, now_s: float) -> None:
        """Arrivals up to this one were taken; 0: none."""
        if last:
            self._taken.append((now_s, last))
