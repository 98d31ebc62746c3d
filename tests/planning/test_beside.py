"""The turns of a simulation are those of a database: the same jobs come, and the same ones may go, round for round."""

from __future__ import annotations

from random import Random

import pytest

from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.limits import Limit
from fencerow.limits.limits import define
from fencerow.planning.gating import PlannedGates, SimulatedJob
from fencerow.turns import handing, looks
from tests.kit import jobs
from tests.planning.plans import plan_of

AnyEngine = SqliteEngine | PostgresEngine
PLAN = {
    "workers": {"slots": 100},
    "keys": {"account": {"entities": 3}},
    "jobs": {
        "keyed": {"key": "account", "arrivals": "1/s", "duration_s": 1},
        "limited": {"arrivals": "1/s", "duration_s": 1, "limits": ["chain"]},
        "both": {"key": "account", "arrivals": "1/s", "duration_s": 1, "limits": ["chain"]},
    },
    "limits": {"chain": {"at_once": 2}},
}


@pytest.mark.parametrize("seed", range(12))
def test_the_same_jobs_get_their_turns(engine: AnyEngine, seed: int) -> None:
    random = Random(seed)
    plan = plan_of(PLAN)
    gates = PlannedGates(plan)
    engine.run(define(Limit("chain", at_once=2), actor="test", reason=None))
    holder = jobs.register(engine)
    coming: dict[str, SimulatedJob] = {}
    for number in range(15):
        kind, entity = random.choice(plan.jobs), random.randrange(3)
        job = SimulatedJob(number, kind, entity, number, gates.gates_of(kind, entity, "", number))
        key = f"account/{entity}" if kind.key is not None else None
        (job_id,) = jobs.submit(engine, jobs.new_job(exclusive=key, limits=kind.limits or None))
        coming[job_id] = job
        gates.arrive(job)

    rounds, looked_at = 0, gates.waiting()
    turned: set[int] = set()
    while coming:
        while engine.run(looks.turns_wanted())[0]:
            engine.run(handing.hand_over())
        given, _ = gates.hand_over(looked_at, 0)
        free = {each for each in coming if jobs.read(engine, each).state is State.QUEUED}
        turned |= {job.number for job in given}
        assert {coming[each].number for each in free} == turned
        looked_at = []
        for each in jobs.claim(engine, holder, limit=2):
            engine.run(store.succeed([store.Success(each.id, each.attempt, "null")], holder=holder))
            ended = coming.pop(each.id)
            gates.leave(ended)
            turned.discard(ended.number)
            looked_at += ended.gates
        rounds += 1

    assert rounds > 3
