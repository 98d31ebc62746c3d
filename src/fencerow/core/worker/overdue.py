"""Which attempts here should long be over, by this process's own clock, and are not: others may end them.

The database's clock may jump, and an outage keeps outcomes from being written: neither says how long a handler has
run. So the worker measures it, from the keeper's thread, which a blocked event loop does not stop. What is
overdue here was past its limit at one look, and is not over a whole lease later: its outcome had time to come.

What waits for a slot for so long will not begin here any more. It is withdrawn before anybody is told: of
the start and the withdrawal one wins.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from fencerow.core.model.wanted import Overdue
from fencerow.core.worker.attempt import Attempt

STATED_MAX = 100  # the rest follows when these are ended


class OverdueWatch:
    """Looks at every attempt of this worker. Used in the keeper's thread only."""

    def __init__(
        self, attempts: Mapping[tuple[str, int], Attempt], *, margin_s: float, lease_s: float
    ) -> None:
        self._attempts = attempts
        self._margin_s = margin_s  # what an attempt may take to be ended, beyond its limit
        self._lease_s = lease_s
        self._late_since: dict[tuple[str, int], float] = {}

    def look(self) -> tuple[Overdue, ...]:
        """What may be ended by others, as it stands now."""
        now = time.monotonic()
        late = [attempt for attempt in list(self._attempts.values()) if self._is_late(attempt, now)]
        self._late_since = {attempt.key: self._late_since.get(attempt.key, now) for attempt in late}
        due = [each for each in late if now - self._late_since[each.key] >= self._lease_s]
        return tuple(Overdue(*each.key, begun=not each.withdraw()) for each in due[:STATED_MAX])

    def _is_late(self, attempt: Attempt, now: float) -> bool:
        """An attempt that is over waits for its outcome to be written, and is never late."""
        if attempt.timeout_s is None or attempt.is_over:
            return False
        return now - (attempt.started or attempt.taken) > attempt.timeout_s + self._margin_s
