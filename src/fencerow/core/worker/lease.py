"""What a worker believes of its own lease, by the steady clock of its own host.

The database decides who owns what; this only makes the worker stop earlier than others may start, by the rule of all
leases (`db/leases.py`; it is River's trust window). Other than a mutex, a worker that was late goes on after its next
renewal: that its row lives says that nobody has declared it dead.

A gap in the renewals also takes away the right to declare others dead: after an outage everybody's
lease has run out, and whoever wakes first would execute all the others. So does a jump of the database's clock:
after it the lease of everybody who has not renewed since says nothing.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from fencerow.core.db.leases import deadline_of, margin_of
from fencerow.core.db.steady import steady


@dataclass(frozen=True, slots=True)
class Warrant:
    """In whose name others may be declared dead, and until when by the database's clock (microseconds)."""

    judge: str
    until_us: int


class Lease:
    """The holder id of the present registration and how long it may be relied upon. Safe from any thread."""

    def __init__(self, lease_s: float, renew_s: float) -> None:
        self.lease_s = lease_s
        self.margin_s = margin_of(lease_s)
        self._gap_s = max(renew_s * 2.5, 0.5)
        self._lock = threading.Lock()
        self._holder: str | None = None
        self._starts_nothing = False
        self._deadline = 0.0
        self._renewed_at = 0.0
        self._gapless_since = 0.0
        self._replied_at = 0.0
        self._renewed_us: int | None = None  # the same renewal by the database's clock

    @property
    def holder(self) -> str | None:
        """The id under which jobs are claimed now; None while there is no registration."""
        return self._holder

    def begin(self, holder: str, sent: float) -> None:
        """A fresh registration was made by a statement sent at this `steady()` time."""
        with self._lock:
            self._holder = holder
            self._deadline = deadline_of(self.lease_s, sent)
            self._renewed_at = self._gapless_since = sent
            self._renewed_us = None

    def renewed(self, sent: float, at_us: int) -> None:
        """A renewal sent at this `steady()` time succeeded, at this instant of the database."""
        with self._lock:
            if sent - self._renewed_at > self._gap_s or self._may_have_jumped(sent, at_us):
                self._gapless_since = sent
            self._deadline = deadline_of(self.lease_s, sent)
            self._renewed_at, self._replied_at = sent, steady()
            self._renewed_us = at_us

    def _may_have_jumped(self, sent: float, at_us: int) -> bool:
        """Whether the database's clock may have gone otherwise than ours since the last renewal, by more than the
        margin: somewhere between sent and reply it was read."""
        if self._renewed_us is None:
            return False  # since the registration; a lease from there everybody has renewed once more
        passed_s = (at_us - self._renewed_us) / 1e6
        most_s = passed_s - (sent - self._replied_at)
        least_s = passed_s - (steady() - self._renewed_at)
        return most_s > self.margin_s or least_s < -self.margin_s

    def stumbled(self) -> None:
        """A renewal failed: the gapless run is over, the lease itself may still stand."""
        with self._lock:
            self._gapless_since = steady() + self._gap_s

    def end(self) -> None:
        """The registration is over, by death or by retirement."""
        with self._lock:
            self._holder = None
            self._deadline = 0.0

    def start_nothing(self) -> None:
        """From now on nothing may be started here, whatever renewals say: the process is about to end."""
        self._starts_nothing = True

    def holds(self, now: float | None = None) -> bool:
        """Whether new work may be started."""
        if self._starts_nothing:
            return False
        return self._holder is not None and (steady() if now is None else now) < self._deadline

    def may_judge(self, now: float | None = None) -> bool:
        """Whether others may be declared dead: own renewals went well without a gap for one whole lease."""
        moment = steady() if now is None else now
        return self.holds(moment) and moment - self._gapless_since >= self.lease_s

    def warrant(self, now: float | None = None) -> Warrant | None:
        """The right to declare others dead, if there is one.

        It ends, by the database's clock, a margin after this moment, and when the renewal it rests on is followed
        by a gap. A statement that comes later than that was held up by the very outage which made the others
        late, or the clock has jumped since the renewal: who is late by less than the margin has stopped already.
        """
        moment = steady() if now is None else now
        with self._lock:
            if not self.may_judge(moment) or self._holder is None or self._renewed_us is None:
                return None
            valid_s = min(self._gap_s, moment - self._renewed_at + self.margin_s)
            return Warrant(self._holder, self._renewed_us + round(valid_s * 1_000_000))
