"""Retention, in every worker with no leader: periods are made ahead and ended, the rest goes by rows.

What goes by rows goes in short transactions, and as long as one took nothing is done before the next.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

from fencerow.core.chore import Chore
from fencerow.core.config import CoreConfig
from fencerow.core.errors import Busy, SchemaMissing
from fencerow.core.model.state import State
from fencerow.core.schema.migrate import lock_number
from fencerow.core.store import store
from fencerow.core.telemetry import Fact, Telemetry
from fencerow.core.wing import Purge, Wing, wings
from fencerow.db.engine import Engine
from fencerow.db.removal import removed
from fencerow.db.run import Operation
from fencerow.db.trouble import is_trouble
from fencerow.retention.periods import (
    AHEAD,
    Period,
    close_periods,
    detach_period,
    drop_period,
    finalize_period,
    forget_lost_periods,
    forget_period_notes,
    leave_period,
    make_period,
    owns_periods,
    periods,
    take_period,
)
from fencerow.retention.purging import (
    forget_workers,
    is_used,
    purge_by_age,
    purge_by_count,
    purge_by_own_age,
    purge_keys,
    purge_repeated,
    purge_spent,
    spent_workers,
)
from fencerow.retention.settings import RetentionSettings

log = logging.getLogger("fencerow.worker.maintenance")

Part = Callable[[], Awaitable[object]]

BATCH_ROWS = 500
NOTES_ROWS = 5000
EVERY_S = 60.0
WORKERS_KEPT_S = 3600.0
REPEATED_KEPT_S = 24 * 3600.0  # no network, no pooler and no kernel keeps a statement for so long
# A table may go when its youngest job is past its retention: so much of the retention, at most, jobs stay longer.
PERIODS_PER_RETENTION = 4


class MaintenanceChore(Chore):
    """One round after another; the first comes when the worker has settled."""

    name = "maintenance"

    def __init__(self, engine: Engine, config: CoreConfig, telemetry: Telemetry) -> None:
        self._engine = engine
        self._kept = kept = RetentionSettings.of(config)
        self._unknown_max_s = config.unknown_max_s
        self._telemetry = telemetry
        self._ages = {
            State.SUCCEEDED: kept.retention_succeeded_s,
            State.FAILED: kept.retention_failed_s,
            State.CANCELLED: kept.retention_cancelled_s,
        }
        self._lock = lock_number(f"periods:{getattr(engine, 'schema', '')}")
        self._warned = False
        self._started = False
        self._config = config
        self._of_wings: dict[str, Sequence[Purge]] = {}  # of those whose tables have, or had, rows

    async def tick(self) -> float:
        """The loop's body."""
        if self._started:
            await self.round()
        self._started = True
        return EVERY_S

    async def round(self) -> None:
        """Do all there is to do now."""
        in_periods = False
        parts: list[Part] = []
        if self._engine.traits.has_periods:
            in_periods = await self._engine.arun(owns_periods())
            # The alarm before the ends: to end one may take long, and the next may begin meanwhile.
            parts += [self._make_periods] if in_periods else []
            parts += [partial(self._alarm, in_periods)]
            parts += [self._end_periods] if in_periods else []
        of_wings = [partial(self._purge_wing, wing) for wing in wings()]
        await _each([*parts, self._move_late, *self._purges(everywhere=not in_periods), *of_wings])

    async def _purge_wing(self, wing: Wing) -> None:
        """Remove what is to go of a wing. As long as its tables are empty nobody loads what does that."""
        if wing.name not in self._of_wings:
            if wing.used is not None and not await self._engine.arun(is_used(wing.used)):
                return
            self._of_wings[wing.name] = wing.purges(self._engine, self._config, self._telemetry)
        await _each(self._of_wings[wing.name])

    # --- periods -----------------------------------------------------------------------------------

    def _length_s(self, state: State) -> float | None:
        """How long a period of the state is; None when its jobs are gone too soon for periods."""
        age_s = self._ages[state]
        if age_s < self._kept.retention_period_s:
            return None
        return max(self._kept.retention_period_s, age_s / PERIODS_PER_RETENTION)

    async def _make_periods(self) -> None:
        if lost := await self._engine.arun(forget_lost_periods()):
            log.error("the tables of open periods are gone, jobs could not end into them: %s", lost)
        for state in self._ages:
            length_s = self._length_s(state)
            if length_s is None:
                continue
            while await self._engine.arun(make_period(state, length_s=length_s, lock=self._lock)):
                pass

    async def _end_periods(self) -> None:
        for state, age_s in self._ages.items():
            await self._engine.arun(close_periods(state, age_s=age_s))
        while period := await self._engine.arun(take_period()):
            try:
                await self._end(period)
            except (Busy, SchemaMissing) as error:
                # Somebody reads it, or is ending it too. What is left to do is seen from its table next time.
                log.debug("period %s cannot end yet: %s", period.partition, error)
                await self._engine.arun(leave_period(period.id))
                return

    async def _end(self, period: Period) -> None:
        """Do what is left to do with a closed period, as its stage tells."""
        if period.stage == "attached":
            await self._forget_notes(period)
            await self._engine.arun(detach_period(period.partition))
        elif period.stage == "detaching":
            await self._engine.arun(finalize_period(period.partition))
        await self._engine.arun(drop_period(period.partition, period.id))
        self._telemetry.emit(Fact.PERIOD_ENDED, state=period.state, partition=period.partition)
        log.info("the %s jobs in %s are past their retention and gone", period.state, period.partition)

    async def _forget_notes(self, period: Period) -> None:
        some = forget_period_notes(period.partition, limit=NOTES_ROWS)
        while await self._engine.arun(some):
            pass

    async def _alarm(self, is_owner: bool) -> None:
        """Say it when fewer periods are ahead than there should be. Jobs end all the same, and go by rows."""
        known = await self._engine.arun(periods())
        short = {
            state: ahead
            for state in self._ages
            if self._length_s(state) is not None
            and (ahead := sum(each.is_ahead for each in known if each.state is state)) < AHEAD
        }
        for state, ahead in short.items():
            self._telemetry.emit(Fact.PERIODS_SHORT, state=state, ahead=ahead)
        if short and not self._warned:
            log.warning(
                "fewer than %d periods are ahead for %s jobs%s",
                AHEAD,
                ", ".join(short),
                ""
                if is_owner
                else ": this role does not own the tables; run a worker or `fencerow migrate` that does",
            )
        self._warned = bool(short)

    # --- jobs that could not be moved --------------------------------------------------------------

    async def _move_late(self) -> None:
        """Each by itself: what the database refuses again stays where it is, and holds up no other."""
        for job_id in await self._engine.arun(store.unmoved(limit=BATCH_ROWS)):
            try:
                await self._engine.arun(store.move_late(job_id))
            except Exception as error:
                if is_trouble(error):
                    raise
                log.error(
                    "job %s has ended and still cannot be moved to the finished jobs: %s", job_id, error
                )

    # --- rows --------------------------------------------------------------------------------------

    def _purges(self, *, everywhere: bool) -> list[Part]:
        removals = [
            purge_by_own_age(limit=BATCH_ROWS),
            purge_spent(age_s=self._kept.retention_ephemeral_s, limit=BATCH_ROWS),
            purge_repeated(age_s=REPEATED_KEPT_S, limit=BATCH_ROWS),
            purge_keys(limit=BATCH_ROWS),
        ]
        return [
            *(partial(self._purge_finished, state, everywhere) for state in self._ages),
            *(partial(self._all, removal) for removal in removals),
            self._forget_workers,
        ]

    async def _purge_finished(self, state: State, everywhere: bool) -> None:
        age_s = self._ages[state]
        count = await self._all(purge_by_age(state, age_s=age_s, limit=BATCH_ROWS, everywhere=everywhere))
        if self._kept.retention_count_max is not None:
            keep = self._kept.retention_count_max
            count += await self._all(purge_by_count(state, keep=keep, limit=BATCH_ROWS))
        if count:
            self._telemetry.emit(Fact.PRUNED, state=state, count=count)

    async def _forget_workers(self) -> None:
        # A name counts as known for as long as the row of a worker that knew it is there.
        kept_s = max(WORKERS_KEPT_S, self._unknown_max_s)
        if spent := await self._engine.arun(spent_workers(age_s=kept_s)):
            await self._engine.arun(forget_workers(spent, age_s=kept_s))

    async def _all(self, removal: Operation[int]) -> int:
        return await removed(self._engine, removal, limit=BATCH_ROWS)


async def _each(parts: Iterable[Part]) -> None:
    """Take every part, though one may fail: its error is raised when the others have had their turn.

    The database's trouble would meet them all, so that ends the round.
    """
    first: Exception | None = None
    for part in parts:
        try:
            await part()
        except Exception as error:
            if is_trouble(error):
                raise
            first = first or error
    if first is not None:
        raise first
