"""`change` and `run_now` as people call them: by id, with bad input, and when the answer is lost."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from fencerow import Client
from fencerow.core.model.state import State
from fencerow.core.model.wakeup import Queued, decode
from fencerow.errors import (
    IllegalMove,
    InvalidInput,
    JobNotFound,
    OutcomeUnknown,
)
from fencerow.operators import looking
from tests.core.client.flaky import Flaky
from tests.core.store.stage import bring
from tests.kit.jobs import AnyEngine, claim, new_job, read, register, submit

losses = pytest.mark.parametrize("loss", ["lost after", "lost before"])


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"run_at": datetime(2026, 1, 1)},
        {"run_at": datetime.max.replace(tzinfo=UTC)},
        {"run_at": datetime.now(UTC), "delay_s": 1},
        {"delay_s": -1},
        {"delay_s": float("nan")},
        {"priority": 101},
        {"priority": 1.5},
        {"queue": ""},
        {"reason": "x" * 501, "priority": 1},
    ],
)
def test_what_cannot_be_is_refused_at_the_door(engine: AnyEngine, wrong: dict[str, object]) -> None:
    (job_id,) = submit(engine)
    before = read(engine, job_id)
    with pytest.raises(InvalidInput):
        Client(engine).change(job_id, **wrong)  # type: ignore[arg-type]
    assert read(engine, job_id) == before


async def test_its_twin_does_the_same(engine: AnyEngine) -> None:
    (job_id,) = await asyncio.to_thread(submit, engine, new_job(delay_s=60))
    client = Client(engine)
    assert (await client.achange(job_id, delay_s=timedelta(seconds=30))).changes
    assert (await client.handle(job_id).arun_now()).changes
    assert (await client.handle(job_id).achange(priority=2)).changes == {"priority": (0, 2)}
    await client.aclose()


def test_workers_are_told_of_the_place_where_the_job_lies_now(engine: AnyEngine) -> None:
    (job_id,) = submit(engine, new_job(delay_s=60))
    flaky = Flaky(engine)

    Client(flaky).change(job_id, queue="bulk", priority=4, delay_s=0)

    (told,) = map(decode, flaky.woken)
    assert told == Queued("bulk", 4, read(engine, job_id).run_at_us)


@losses
def test_a_change_whose_answer_was_lost_is_made_once(engine: AnyEngine, loss: str) -> None:
    (job_id,) = submit(engine)
    Client(Flaky(engine, loss)).change(job_id, priority=5)
    assert read(engine, job_id).priority == 5
    assert [each.kind for each in engine.run(looking.events(job_id))] == ["changed"]


def test_a_change_in_doubt_stays_so_when_the_job_was_claimed_since(engine: AnyEngine) -> None:
    class Quick(Flaky):
        def run(self, operation):  # type: ignore[no-untyped-def]
            try:
                return super().run(operation)
            except OutcomeUnknown:
                assert claim(engine, register(engine))
                raise

    (job_id,) = submit(engine)
    with pytest.raises(OutcomeUnknown):
        Client(Quick(engine, "lost before")).change(job_id, queue="mail", delay_s=0)


def test_who_comes_too_late_is_told(engine: AnyEngine) -> None:
    job = bring(engine, State.RUNNING)
    with pytest.raises(IllegalMove, match="running") as refused:
        Client(engine).run_now(job.id)
    assert refused.value.state == State.RUNNING
    assert "cancel it" in refused.value.fix
    with pytest.raises(JobNotFound):
        Client(engine).run_now(new_job().id)
