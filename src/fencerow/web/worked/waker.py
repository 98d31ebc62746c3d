"""Jobs whose endpoints were silent for too long: the workers of an app that declares such jobs wake them."""

from __future__ import annotations

from typing import Final, NamedTuple

from fencerow.core.app.app import JobsApp
from fencerow.core.chore import Chore
from fencerow.core.store.attempts import Requeued
from fencerow.core.store.hints import hints_of_queued
from fencerow.core.store.suspending import lock_waiters, wake_locked
from fencerow.db.run import Steps, execute, operation

LOOK_S_MAX: Final = 1.0
LOOK_S_MIN: Final = 0.01
LOOKED_AT: Final = 500
ACTOR: Final = "its time"


class WokenAttempts(NamedTuple):
    """The jobs that were woken, and in how many seconds the next is due, if one is."""

    jobs: list[Requeued]
    next_s: float | None


@operation()
def wake_overdue(*, limit: int) -> Steps[WokenAttempts]:
    """Wake suspended jobs whose endpoints were silent for too long. Locked rows are left for the next look. May be
    repeated."""
    rows = yield from execute("due_worked", limit=limit)
    looked = list(dict.fromkeys(str(row[0]) for row in rows))
    woken: list[Requeued] = []
    if looked:
        ids = [each.id for each in (yield from lock_waiters(looked, skip_locked=True))]
        woken = yield from wake_locked(ids, actor=ACTOR, anyway=False)
        yield from execute("worked_seen", looked=looked, ids=ids)
    following = yield from execute("next_worked")
    return WokenAttempts(woken, float(str(following[0][0])) if following else None)


class OverdueWaker(Chore):
    """Looks when the next is due, and once a second at least. Added by the first such job that an app declares."""

    name = "worked-over-http"
    jitter = 0.0

    def __init__(self, app: JobsApp) -> None:
        self._app = app

    async def tick(self) -> float:
        """Wake those that are due; returns the pause until the next look."""
        woken = await self._app.engine.arun(wake_overdue(limit=LOOKED_AT))
        if woken.jobs:
            self._app.engine.wake(hints_of_queued(woken.jobs))
        return LOOK_S_MAX if woken.next_s is None else min(LOOK_S_MAX, max(LOOK_S_MIN, woken.next_s))
