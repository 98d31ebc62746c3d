"""How far work may be ahead of what the database knows of it, so that a death is laid at few doors.

The worker's row says how many of its jobs may have begun without their end being confirmed, and no more begin here.
When the worker dies, what stood further back in its lane cannot have begun: reclaim lets it go without suspicion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized

from fencerow.worker.pool import Pool

AHEAD = 50  # beyond the slots: what ends while one group of outcomes is being written
AT_MOST = 5_000


class Begun:
    """The bound, which rises when it is met and sinks when it is far away. Used on the event loop, but for `stated`.

    A higher bound holds once the row has it, a lower one before: whatever the row says, it was kept.
    """

    def __init__(self, least: int, held: Sized, pools: Sequence[Pool], ask: Callable[[], None]) -> None:
        self._least = self._granted = self._wanted = least
        self._held = held
        self._pools = pools
        self._ask = ask  # for a renewal, now
        self._doubts = 0
        self.met = False  # somebody was refused and waits for room

    def count(self) -> int:
        """Jobs that were taken from the pools, by a slot or to be handed back, and are not confirmed."""
        count = len(self._held)
        for pool in self._pools:  # asked for each job: `sum` would cost twice as much
            count -= pool.waiting
        return count

    def room(self) -> int:
        """How many more may begin now. Where there is none, a higher bound is asked for."""
        room = self._granted - self.count()
        if room <= 0:
            self._meet()
        return room

    def stated(self) -> int | None:
        """What the row shall say; None while a lost reply may have left jobs in the lanes that nobody here knows."""
        return None if self._doubts else self._wanted

    def confirmed(self, stated: int | None) -> None:
        """The row has it."""
        if stated is not None and self._granted < stated <= self._wanted:
            self._granted = stated
            self.go_on()
        elif self._granted == self._wanted > self._least and 4 * self.count() < self._granted:
            self._granted = self._wanted = max(self._least, self._granted // 2)

    def go_on(self) -> None:
        """There is room again: whoever was refused looks once more."""
        self.met = False
        for pool in self._pools:
            pool.look_again()

    def doubt(self) -> None:
        """The reply to a claim was lost."""
        self._doubts = 2

    def compared(self, *, any_unknown: bool) -> None:
        """The database's list of what is held here was compared with what is known."""
        self._doubts = 2 if any_unknown else max(0, self._doubts - 1)

    def _meet(self) -> None:
        self.met = True
        if self._wanted == self._granted < AT_MOST:
            self._wanted = min(AT_MOST, 2 * self._granted)
            self._ask()
