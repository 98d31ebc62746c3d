"""When a process that died is started again, and when that is given up. Pure: it knows no process and no clock."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from fencerow.db.errors import exits

# Nothing that passes by itself: usage, settings, a schema of another version; a database that refuses this role, or one
# that stayed away: the process itself has waited for it, as long as one without a supervisor does.
REFUSALS = (exits.REFUSED, exits.SCHEMA, exits.UNAVAILABLE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """How long is waited, and how often is tried. Seconds."""

    first_s: float = 0.5
    most_s: float = 30.0
    healthy_s: float = 60.0  # who was ready for so long has a clean record
    starts_max: int = 5  # that fail one after the other, while nobody is ready
    silent_s: float = 90.0  # then a lease is long lost: code there keeps the interpreter's lock
    unwell_s: float = 15.0  # beyond what a process says that was stopped for a while
    slow_start_s: float = 60.0  # then a start that has said nothing yet is told of
    start_s: float = 600.0  # then it is ended: an import may take long, but hangs
    jitter: float = 0.2


@dataclass(slots=True)
class Restarts:
    """The deaths of one supervisor's processes, by the number of their place."""

    patience: Patience = field(default_factory=Patience)
    ever_ready: bool = False
    failed_starts: int = 0  # since somebody was ready
    worst: int = exits.OK  # of these
    _deaths: dict[int, int] = field(default_factory=dict)

    def ready(self) -> None:
        """Somebody has started well."""
        self.ever_ready = True
        self.failed_starts, self.worst = 0, exits.OK

    def died(self, number: int, code: int, ready_s: float | None) -> float:
        """Note a death; returns after how long the place is filled again. `ready_s`: for how long it had been ready."""
        if ready_s is None:
            self.failed_starts += 1
            self.worst = max(self.worst, code)
        elif ready_s >= self.patience.healthy_s:
            self._deaths[number] = 0
        deaths = self._deaths[number] = self._deaths.get(number, 0) + 1
        pause_s = min(self.patience.most_s, self.patience.first_s * 2.0 ** min(deaths - 1, 30))
        # Those that died of one cause at one time come back apart.
        return pause_s * (1 + self.patience.jitter * random.random())  # noqa: S311

    def is_hopeless(self, code: int, *, any_ready: bool) -> bool:
        """Whether the supervisor should end, after a death with this code."""
        if any_ready or not self.failed_starts:
            return False
        refused = code in REFUSALS and not self.ever_ready
        return refused or self.failed_starts >= self.patience.starts_max
