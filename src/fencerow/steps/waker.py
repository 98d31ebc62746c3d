"""Jobs whose sleep is over, or that waited in vain for long enough: every worker wakes them, with no leader.

One look at an index finds those that are due. However many sleep, the others cost nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from fencerow.core.chore import Chore, Site
from fencerow.core.store.attempts import Requeued
from fencerow.core.store.hints import hints_of_queued
from fencerow.core.store.suspending import lock_waiters, wake_locked
from fencerow.db.run import Steps, execute, first_column, operation

LOOK_S_MAX = 1.0  # between two looks: so much later a job wakes whose wait was written after the last one
LOOK_S_MIN = 0.01
LEFT_S = 0.1  # until the next look, where somebody else has locked a job whose time has come
WAITS_MAX = 500  # at a look


class Woken(NamedTuple):
    """The jobs that were woken; in how many seconds the next wait is due, if there is one; and whether jobs were left,
    as somebody else has locked them."""

    jobs: list[Requeued]
    next_s: float | None
    left: bool = False

    @property
    def pause_s(self) -> float:
        """Until the next look."""
        if self.next_s is None:
            return LOOK_S_MAX
        return min(LOOK_S_MAX, max(LEFT_S if self.left else LOOK_S_MIN, self.next_s))


@operation()
def wake_due(*, limit: int, actor: str | None) -> Steps[Woken]:
    """Wake suspended jobs of which the time has come. Locked rows are left for the next look. May be repeated.

    Where a whole look found locked ones among its jobs, it goes on past them: they hide no other.
    """
    found, woken, left = yield from _woken("due_waits", limit, actor)
    if left and found == limit:
        _, others, _ = yield from _woken("free_due_waits", limit, actor)
        woken = [*woken, *others]
    following = yield from execute("next_wait")
    return Woken(woken, float(str(following[0][0])) if following else None, left)


def _woken(due: str, limit: int, actor: str | None) -> Steps[tuple[int, list[Requeued], bool]]:
    """How many waits this statement found to be due, the jobs that were woken, and whether locked ones were left."""
    rows = yield from execute(due, limit=limit)
    looked = list(dict.fromkeys(str(row[0]) for row in rows))
    if not looked:
        return 0, [], False
    ids = [each.id for each in (yield from lock_waiters(looked, skip_locked=True))]
    woken = yield from wake_locked(ids, actor=actor, anyway=False)
    seen = first_column((yield from execute("waits_seen", looked=looked, ids=ids)))
    return len(rows), woken, not set(seen).issuperset(looked)


@operation(alone=True, repeatable=True, writes="")
def any_wait_due() -> Steps[bool]:
    """Whether the time of a wait has come, and nobody has looked at it since."""
    following = yield from execute("next_wait")
    return bool(following) and float(str(following[0][0])) <= 0


class Waker(Chore):
    """Looks when the next wait is due, and once a second at least."""

    name = "steps"
    jitter = 0.0

    def __init__(self, site: Site) -> None:
        self._site = site

    async def tick(self) -> float:
        """Wake those that are due; returns the pause until the next look."""
        woken = await self._site.engine.arun(wake_due(limit=WAITS_MAX, actor=self._site.worker))
        if woken.jobs:
            self._site.telemetry.counters.add("jobs_woken", len(woken.jobs))
            self._site.engine.wake(hints_of_queued(woken.jobs))
        return woken.pause_s
