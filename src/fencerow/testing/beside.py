"""What a worker does beside its jobs, done at once: the sweep of a reaper, turns, waits for a label that are over."""

from __future__ import annotations

from collections.abc import Sequence

from fencerow.core.background.reaper import JobReaper, Warrant
from fencerow.core.config import CoreConfig
from fencerow.core.model.ids import new_id
from fencerow.core.store import store
from fencerow.core.store.attempts import Requeued
from fencerow.core.telemetry import Telemetry
from fencerow.db.engine import Engine
from fencerow.turns import looks
from fencerow.turns.affinity import fall_back, next_fall_back
from fencerow.turns.handing import hand_over, take_turns_back

ACTOR = "drain"
LEASE_S = 30.0


class Beside:
    """Each call does all that there is to do. A worker does so too, but only after a lease, or when it comes by."""

    def __init__(self, engine: Engine, config: CoreConfig, telemetry: Telemetry) -> None:
        self._engine = engine
        self._config = config
        self._telemetry = telemetry

    async def reap(self) -> None:
        """Take back what dead workers hold, and end what has expired."""
        judge, us = new_id(), round(LEASE_S * 1e6)
        row = store.register(holder=judge, name=ACTOR, host="-", pid=0, info="{}", lease_s=LEASE_S)
        await self._engine.arun(row)
        try:
            warrant = Warrant(judge, await self._engine.arun(store.clock()) + us)
            made = JobReaper(
                self._engine, LeaseJudge(warrant), self._config, self._telemetry, NOBODY_HEARS, actor=ACTOR
            )
            await made.tick()
        finally:
            await self._engine.arun(store.retire(holder=judge))

    async def give_turns(self) -> None:
        """Queue the jobs whose turn it is, and those whose wait for a label is over."""
        await self._sweep_gates()
        while (await self._engine.arun(looks.turns_wanted())).at_once:
            await self._engine.arun(hand_over())
        over_us = await self._engine.arun(next_fall_back())
        if over_us is not None and over_us <= 0:
            while await self._engine.arun(fall_back(actor=ACTOR)):
                pass

    async def _sweep_gates(self) -> None:
        """At all gates where jobs wait: turns that nobody uses go on, and no arrival need tell of what is free."""
        after = ""
        while gates := await self._engine.arun(looks.gates_after(after)):
            await self._engine.arun(
                take_turns_back(gates, unclaimed_s=self._config.turn_claim_s, actor=ACTOR)
            )
            await self._engine.arun(hand_over(gates))
            after = gates[-1]


class LeaseJudge:
    """Who may declare others dead."""

    def __init__(self, warrant: Warrant) -> None:
        self._warrant = warrant

    def warrant(self) -> Warrant | None:
        return self._warrant


class Nobody:
    """Where all is asked for anyhow, nobody need be told."""

    def announce_queued(self, jobs: Sequence[Requeued]) -> None:
        """Tell of jobs that may be claimed."""

    def announce_ended(self, ids: list[str]) -> None:
        """Tell of jobs that have ended."""


NOBODY_HEARS = Nobody()
