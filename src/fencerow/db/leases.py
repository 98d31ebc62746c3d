"""What a process believes of something it leased, by the steady clock of its own host: one rule for all of them.

The database decides who owns what; a belief only makes the owner stop earlier than others may start. Its deadline
counts from before the take or the renewal was sent, so it lies before the end of the lease however slow the answer was:

    sent ──────────── reply ─────────────────────────── deadline ── the lease ends in the database
     └── lease_s minus margin ──────────────────────────────┘

The clock counts the time during which the machine slept, see `db/steady.py`. The margin is for clocks that run at
different speeds, and for what is on its way between a look at the belief and the deed.
"""

from __future__ import annotations

from fencerow.db.steady import steady


def margin_of(lease_s: float) -> float:
    """How long before the end of a lease its owner stops."""
    return min(2.0, lease_s * 0.1)


def deadline_of(lease_s: float, sent: float) -> float:
    """Until which `steady()` time a lease may be relied upon that was taken or renewed by what was sent at this one."""
    return sent + lease_s - margin_of(lease_s)


class Belief:
    """Until when one lease may be relied upon. Safe from any thread, without a lock: each field is written whole.

    What was lost stays lost: others may have begun. A fresh take has a belief of its own.
    """

    def __init__(self, lease_s: float, sent: float) -> None:
        """The take was sent at this `steady()` time."""
        self.lease_s = lease_s
        self._deadline = deadline_of(lease_s, sent)
        self._lost = False

    @property
    def deadline(self) -> float:
        """The `steady()` time until which it may be relied upon."""
        return self._deadline

    @property
    def lost(self) -> bool:
        """Whether others may own it by now. It never becomes untrue again."""
        if not self._lost and steady() >= self._deadline:
            self._lost = True
        return self._lost

    @property
    def left_s(self) -> float:
        """For how long it may still be relied upon."""
        return 0.0 if self.lost else max(0.0, self._deadline - steady())

    def renewed(self, sent: float) -> None:
        """A renewal that was sent at this `steady()` time went well. An older answer takes nothing away."""
        if not self._lost:
            self._deadline = max(self._deadline, deadline_of(self.lease_s, sent))

    def lose(self) -> None:
        """The database refused a renewal, or it was given back."""
        self._lost = True
