"""The reaper: in every worker, with no leader. Its statements are safe to run everywhere at once.

It declares others dead only when the keeper's own renewals went well for a whole lease; what the dead
and the retired still hold goes back at every sweep, so that a claim which raced its holder's death is
not stranded.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from fencerow.core.config import CoreConfig
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.core.store.attempts import MovedJob, Requeued
from fencerow.core.store.reap import LeaseAhead, Reclaimed
from fencerow.core.telemetry import Fact, Telemetry
from fencerow.db.engine import Engine
from fencerow.db.portion import Portion
from fencerow.db.run import Operation
from fencerow.db.steady import steady
from fencerow.db.text import amount

log = logging.getLogger("fencerow.worker.reaper")

T = TypeVar("T")

BATCH_ROWS = 500
OVERDUE_DELAY_S = 5.0


@dataclass(frozen=True, slots=True)
class Warrant:
    """In whose name others may be declared dead, and until when by the database's clock (microseconds)."""

    judge: str
    until_us: int


class Judge(Protocol):
    """Whose lease says whether others may be declared dead."""

    def warrant(self) -> Warrant | None: ...


class Announcer(Protocol):
    """Who tells others what a sweep has brought about."""

    def announce_queued(self, jobs: Sequence[Requeued]) -> None: ...

    def announce_ended(self, ids: list[str]) -> None: ...


class JobReaper:
    """One sweep after another."""

    def __init__(
        self,
        engine: Engine,
        lease: Judge,
        config: CoreConfig,
        telemetry: Telemetry,
        announcer: Announcer,
        *,
        actor: str,
    ) -> None:
        self._engine = engine
        self._lease = lease
        self._config = config
        self._telemetry = telemetry
        self._announcer = announcer
        self._actor = actor
        self._ahead: dict[LeaseAhead, float] = {}  # since when each was seen
        self.portion = Portion("reaper", BATCH_ROWS)

    async def tick(self) -> float:
        """One sweep; returns the pause until the next."""
        warrant = self._lease.warrant()
        if warrant is None:
            self._ahead.clear()
        else:
            dead = store.die(judge=warrant.judge, until_us=warrant.until_us)
            for holder in await self._engine.arun(dead):
                self._telemetry.emit(Fact.WORKER_DIED, worker=holder)
                log.warning("worker %s is dead: its lease ran out", holder)
            await self._bury_ahead()
            if lost := await self._engine.arun(store.lost_holders()):
                await self._engine.arun(store.adopt(lost))
        await self._reclaim()
        await self._time_out()
        await self._expire()
        return self._config.sweep_s

    async def _bury_ahead(self) -> None:
        """After the database's clock went back, a lease from before says nothing: a worker is dead that does not renew
        for a whole lease by the clock of this host."""
        sent = steady()
        leases = await self._engine.arun(store.leases_ahead())
        seen = steady()
        self._ahead = {lease: self._ahead.get(lease, seen) for lease in leases}
        silent = [lease for lease, since in self._ahead.items() if sent - since >= lease.lease_s]
        warrant = self._lease.warrant()
        if not silent or warrant is None:
            return
        dead = store.die_ahead(silent, judge=warrant.judge, until_us=warrant.until_us)
        for holder in await self._engine.arun(dead):
            self._telemetry.emit(Fact.WORKER_DIED, worker=holder)
            log.warning("worker %s is dead: it has not renewed since the database's clock went back", holder)

    async def _reclaim(self) -> None:
        while dead := await self._engine.arun(store.dead_holders()):
            (reclaimed, moved), limit = await self._some(partial(store.reclaim, dead, actor=self._actor))
            self._announce(reclaimed, moved)
            for holder in sorted({job.holder for job in reclaimed if job.holder}):
                count = sum(job.holder == holder for job in reclaimed)
                self._telemetry.counters.add("jobs_reclaimed", count)
                self._telemetry.emit(Fact.RECLAIMED, count=count, worker=holder)
                log.warning("took back %s from dead worker %s", amount(count, "job"), holder)
            if len(reclaimed) < limit:
                return  # the rest is locked right now; the next sweep comes soon

    async def _time_out(self) -> None:
        (reclaimed, moved), _ = await self._some(
            partial(store.time_out, delay_s=OVERDUE_DELAY_S, actor=self._actor)
        )
        if started := sum(job.begun for job in reclaimed):
            log.error("ended %s past the time limit; the workers could not", amount(started, "attempt"))
            self._telemetry.counters.add("jobs_timed_out", started)
            self._telemetry.emit(Fact.TIMED_OUT, count=started)
        if waited := len(reclaimed) - started:
            log.warning("took back %s that living workers did not begin in time", amount(waited, "job"))
            self._telemetry.counters.add("jobs_not_begun", waited)
        self._announce(reclaimed, moved)

    async def _expire(self) -> None:
        while True:
            moved, limit = await self._some(partial(store.expire, actor=self._actor))
            if not moved:
                return
            self._telemetry.counters.add("jobs_expired", len(moved))
            self._telemetry.emit(Fact.EXPIRED, count=len(moved))
            self._telemetry.emit(Fact.REAPED, state=State.CANCELLED, count=len(moved))
            self._announce([], moved)
            if len(moved) < limit:
                return

    async def _some(self, ending: Callable[..., Operation[T]]) -> tuple[T, int]:
        """Do this for as many jobs at once as fit; returns what came of it, and of how many at most."""

        async def do(limit: int) -> tuple[T, int]:
            return await self._engine.arun(ending(limit=limit)), limit

        return await self.portion.fit(BATCH_ROWS, do)

    def _announce(self, reclaimed: Sequence[Reclaimed], moved: Sequence[MovedJob]) -> None:
        for state, count in Counter(job.state for job in reclaimed).items():
            self._telemetry.emit(Fact.REAPED, state=state, count=count)
        queued = [job for job in reclaimed if job.state is State.QUEUED]
        self._announcer.announce_queued(
            [Requeued(job.id, job.queue, job.priority, job.run_at_us) for job in queued]
        )
        self._announcer.announce_ended([job.id for job in moved if job.awaited])
