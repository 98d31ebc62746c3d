"""Tells claimers of compensations, which no submit announces: the statement that ends a job makes one.

That end is announced as one that somebody waits for. Who declares a saga hears it, and looks whether it has queued one.
An end that is announced as a success makes none, so nobody looks.
"""

from __future__ import annotations

from collections.abc import Callable

from fencerow.core.chore import Chore
from fencerow.core.model.wakeup import JobsEnded, WakeUp
from fencerow.core.store.attempts import Requeued
from fencerow.core.store.hints import hints_of_queued
from fencerow.db.engine import Engine
from fencerow.db.run import Steps, as_int, execute, operation

REST_S = 3600.0  # it looks when it hears of ends; beneath, claimers find each compensation by polling
HEARD_MAX = 10_000  # ids that it keeps until it looks


@operation(alone=True, repeatable=True, writes="")
def queued_compensations(ids: list[str]) -> Steps[list[Requeued]]:
    """Those of these jobs that nobody has claimed yet."""
    rows = yield from execute("queued_compensations", ids=ids)
    return [
        Requeued(str(row[0]), str(row[1]), as_int(row[2]), as_int(row[3]), lane=str(row[4])) for row in rows
    ]


class Teller(Chore):
    """Runs when it has heard of ends, and else never. Added by the first saga that an app declares.

    `is_for` and `tick` are both called in the event loop of the worker, so between two awaits nothing changes here.
    """

    name = "saga"
    hears = (JobsEnded,)

    def __init__(self, engine: Callable[[], Engine]) -> None:
        self._engine = engine
        self._heard: set[str] = set()

    def for_worker(self) -> Chore:
        return Teller(self._engine)

    def is_for(self, message: WakeUp | None) -> bool:
        if not isinstance(message, JobsEnded) or message.succeeded or len(self._heard) >= HEARD_MAX:
            return False
        self._heard.update(message.ids)
        return True

    async def tick(self) -> float:
        """Announce what the ends that were heard have queued; returns the pause until the next look."""
        if self._heard:
            looked = frozenset(self._heard)
            found = await self._engine().arun(queued_compensations(list(looked)))
            self._heard -= looked  # after the answer: in the database's trouble they are looked for again
            if found:
                self._engine().wake(hints_of_queued(found))
        return REST_S
