"""Two duties of one loop: who waits for a label, and who waits for a turn, do not wait for each other."""

from __future__ import annotations

import pytest

from fencerow.core.background.chores import Chores
from fencerow.core.db.clock import CarriedClock
from fencerow.core.db.postgres import PostgresEngine
from fencerow.core.store import store
from fencerow.core.telemetry import Telemetry
from fencerow.core.worker import turns
from fencerow.core.worker.lease import WorkerLease
from fencerow.core.worker.wakeups import WakeUps
from fencerow.testing.clock import clock_of
from tests.kit.jobs import new_job, submit


async def test_a_locked_job_whose_wait_for_a_label_is_over_stops_no_turn(
    pg: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "SWEEP_S_MIN", 3600.0)  # it would find the gate, some seconds later
    monkeypatch.setattr(turns, "TAKEN_S", 600.0)
    wakeups = WakeUps(pg, WorkerLease(30.0, 1.0), [], Chores([], Telemetry()))
    looks = turns.Turns(
        pg, wakeups, CarriedClock(), Telemetry(), poll_max_s=3600.0, turn_claim_s=60.0, actor="worker w"
    )
    await looks.tick()
    (labelled,) = submit(pg, new_job(affinity="gpu", affinity_wait_s=1.0))
    clock_of(pg).advance(2.0)

    with pg.session() as other:
        other.connection.execute("SELECT 1 FROM fencerow.jobs WHERE id = %s FOR UPDATE", (labelled,))
        keyed = submit(pg, *(new_job(exclusive=key) for key in ("a", "b")))
        pauses = [await looks.tick() for _ in range(2)]

    found = await pg.arun(store.read(keyed))
    assert {each.state for each in found.values()} == {"queued"}
    assert min(pauses) > 0, "nobody asks without a pause for what is locked"
