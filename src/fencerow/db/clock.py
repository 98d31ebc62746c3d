"""The database's time as this process carries it on: it never goes back, though the database's clock may.

A clock that goes back by an hour would leave every job that is due lying for that hour. So this process remembers
what the clock had reached. It is used for one question only, whether a job is due: leases, deadlines and
expiries are the database's own. Only the database can say that its clock went back, by a reading that is lower
than an earlier one; a wild clock on this host says nothing.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

from fencerow.db.due import OWN, Due
from fencerow.db.steady import steady

log = logging.getLogger("fencerow.worker")

TOLERANCE_S = 1.0  # less makes nobody late for longer than a sweep does


@dataclass(frozen=True, slots=True)
class _Reading:
    at_us: int
    sent: float
    replied: float


class CarriedClock:
    """The last reading of the database's clock, and what is kept of one that it went back behind. From any thread."""

    def __init__(self) -> None:
        self.turns = 0  # how often it was seen to go back
        self.is_behind = False  # it stands behind what it had reached: `due` tells until when jobs are due
        self._lock = threading.Lock()
        self._last: _Reading | None = None
        self._kept: _Reading | None = None  # from which the time is carried on; None while the clock is well
        # The lowest instant after each time that it went back, of those it stands above.
        self._sinces: list[int] = []

    def read(self, sent: float, at_us: int) -> None:
        """The database's clock said this, to a statement sent at this `steady()` time; call it at the reply."""
        reading = _Reading(at_us, sent, steady())
        with self._lock:
            last = self._last
            if last is not None and sent < last.replied:
                return  # two statements at once: nobody knows which was first
            self._last = reading
            if last is None:
                return
            if at_us < last.at_us - TOLERANCE_S * 1e6:
                self._went_back(last, reading)
            elif self._kept is not None and at_us >= self._kept_us(sent) - TOLERANCE_S * 1e6:
                self._kept, self._sinces, self.is_behind = None, [], False
                log.warning("the database's clock has caught up: due jobs go by it alone again")
            elif (ahead_s := (at_us - last.at_us) / 1e6 - (reading.replied - last.sent)) > TOLERANCE_S:
                self._leave_below(last, reading)
                log.warning(
                    "the database's clock went ahead by %.1f s: delays and expiries up to there have passed; "
                    "find out what sets it",
                    ahead_s,
                )

    def now_us(self) -> int | None:
        """What the database's clock says now, carried on from its last reading; None before the first."""
        with self._lock:
            last = self._last
        return None if last is None else last.at_us + round((steady() - last.replied) * 1e6)

    def due(self) -> Due:
        """Until when jobs are due now."""
        with self._lock:
            return OWN if self._kept is None else Due(self._kept_us(steady()), min(self._sinces))

    def behind_s(self) -> float:
        """How far the database's clock stands behind what it had reached; 0 while it is well."""
        with self._lock:
            if self._kept is None or self._last is None:
                return 0.0
            return max(0.0, (self._kept_us(self._last.replied) - self._last.at_us) / 1e6)

    def _went_back(self, last: _Reading, now: _Reading) -> None:
        before_us = now.at_us - round((now.replied - last.sent) * 1e6)  # it went back some time since then
        if self._kept is None:
            self._kept, self.is_behind = last, True
        self._sinces.append(before_us)
        log.error(
            "the database's clock went back by %.1f s: jobs that were due before go on by the time that this process "
            "carries on; find out what sets it",
            (last.at_us - now.at_us) / 1e6 + now.sent - last.replied,
        )
        self.turns += 1

    def _leave_below(self, last: _Reading, now: _Reading) -> None:
        """It went ahead, and not as far as it had been: what was written where it stood is due by the clock now."""
        if self._kept is not None:
            above = [since_us for since_us in self._sinces if since_us > last.at_us]
            self._sinces = above or [now.at_us - round((now.replied - last.sent) * 1e6)]

    def _kept_us(self, moment: float) -> int:
        assert self._kept is not None
        return self._kept.at_us + round((moment - self._kept.replied) * 1e6)
