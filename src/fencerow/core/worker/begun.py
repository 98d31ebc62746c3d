"""How far work may be ahead of what the database knows of it, so that a death is laid at few doors.

The worker's row says how many of its jobs may have begun without their end being confirmed, and no more begin here.
When the worker dies, what stood further back in its lane cannot have begun: reclaim lets it go without suspicion.

That holds while the lanes are as the worker knows them. After a lost reply to a claim, or when the database's clock
went back, the row must say first that all may have begun: until then nothing begins.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from fencerow.core.worker.pool import Pool

AHEAD = 50  # beyond the slots: what ends while one group of outcomes is being written
AT_MOST = 5_000


class Begun:
    """The bound, which rises when it is met and sinks when it is far away. Used on the event loop, but for `stated`.

    A higher bound holds once the row has it, a lower one before: whatever the row says, it was kept.
    """

    def __init__(
        self, least: int, held: Collection[Any], pools: Sequence[Pool], ask: Callable[[], None]
    ) -> None:
        self._least = self._granted = self._wanted = least
        self._held = held
        self._pools = pools
        self._ask = ask  # for a renewal, now
        self._doubts = 0
        self._out_of_order: set[Any] = set()  # of what is held: claimed before the clock was seen to go back
        self._withheld = False  # nothing begins before the row says that all may have begun
        self.met = False  # somebody was refused and waits for room

    def count(self) -> int:
        """Jobs that were taken from the pools, by a slot or to be handed back, and are not confirmed."""
        count = len(self._held)
        for pool in self._pools:  # asked for each job: `sum` would cost twice as much
            count -= pool.waiting
        return count

    def room(self) -> int:
        """How many more may begin now. Where there is none, a higher bound is asked for."""
        if self._withheld:
            self.met = True
            return 0
        room = self._granted - self.count()
        if room <= 0:
            self._meet()
        return room

    def stated(self) -> int | None:
        """What the row shall say; None while the lanes may hold what nobody here knows, or in another order."""
        return None if self._doubts or self._out_of_order or self._withheld else self._wanted

    def confirmed(self, stated: int | None) -> None:
        """The row has it."""
        if stated is None and self._withheld:
            self._withheld = False
            self.go_on()
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
        self._withhold()

    def clock_went_back(self) -> None:
        """What is held now was claimed in another order than the instants of the claims tell."""
        self._out_of_order = set(self._held)
        if self._out_of_order:
            self._withhold()

    def compared(self, *, any_unknown: bool) -> None:
        """The database's list of what is held here was compared with what is known."""
        self._doubts = 2 if any_unknown else max(0, self._doubts - 1)
        self._out_of_order &= set(self._held)

    def _withhold(self) -> None:
        self._withheld = True
        self._ask()

    def _meet(self) -> None:
        self.met = True
        if self._wanted == self._granted < AT_MOST:
            self._wanted = min(AT_MOST, 2 * self._granted)
            self._ask()
