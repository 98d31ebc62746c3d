"""A worker that is changed while it runs: slots, queues, pause and leaving, ordered on its row."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from fencerow.core.model.wakeup import Ordered, encode
from fencerow.core.model.wanted import Leave, OrderedChange
from fencerow.core.model.worker import WorkerRecord
from fencerow.core.store import store
from fencerow.core.telemetry import Fact
from fencerow.core.worker import pool as pool_module
from fencerow.db.run import Operation, arun
from fencerow.errors import InvalidInput, OrderRefused, OutcomeUnknown
from tests.core.worker.faulty import Faulty
from tests.core.worker.stage import Stage, kinds, quick, read, until, worker_of, working
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S

SLOW = quick(renew_s=20.0, shutdown_s=4 * PATIENCE_S)  # no renewal comes by itself, no end before its time


class Gate:
    """Handlers that count how many run at once and wait to be let go."""

    def __init__(self) -> None:
        self.running = self.started = 0
        self.most = 0  # at once
        self._permits = asyncio.Semaphore(0)

    async def held(self) -> None:
        self.started += 1
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self._permits.acquire()
        finally:
            self.running -= 1

    def let(self, number: int) -> None:
        for _ in range(number):
            self._permits.release()

    async def reach(self, number: int) -> None:
        await until(lambda: self.running == number, what=f"{number} running, there are {self.running}")


@pytest.fixture
def gate() -> Gate:
    return Gate()


def held(gate: Gate) -> Callable[[], Any]:
    async def held() -> None:
        await gate.held()

    return held


async def order(stage: Stage, change: OrderedChange, *, wake: bool = True) -> int:
    """What an operator somewhere else does."""
    holder = stage.worker.holder
    assert holder is not None
    given = await arun(store.ordering(holder, change, actor="ada", reason="because"), stage.engine.arun)
    if wake:
        stage.engine.wake([encode(Ordered(holder))])
    return given.version


async def record(stage: Stage) -> WorkerRecord:
    (found,) = await stage.engine.arun(store.list_workers(holder=stage.worker.holder))
    return found


async def stated(stage: Stage, version: int) -> WorkerRecord:
    """The worker's row, once it says that it has carried the order out."""
    deadline = time.monotonic() + 90
    while True:
        found = await record(stage)
        if found.stated is not None and found.stated.version >= version:
            return found
        assert time.monotonic() < deadline, f"not carried out: {found}"
        await asyncio.sleep(0.01)


async def test_more_slots_run_more_at_once(engine: AnyEngine, gate: Gate) -> None:
    async with working(engine, held(gate), queues={"mail": 1}, config=SLOW) as stage:
        for _ in range(6):
            await stage.submit("held")
        await gate.reach(1)

        version = await order(stage, OrderedChange(slots=4))

        await gate.reach(4)
        found = await stated(stage, version)
        assert found.stated is not None
        assert [(each.queues, each.slots) for each in found.stated.slot_groups] == [(("mail",), 4)]
        assert (found.wanted_by, found.wanted_reason, found.wanted_version) == ("ada", "because", 1)
        gate.let(100)
        await stage.heard.wait(Fact.SUCCEEDED, 6)


async def test_fewer_slots_let_running_jobs_end(engine: AnyEngine, gate: Gate) -> None:
    async with working(engine, held(gate), queues={"mail": 4}, config=SLOW) as stage:
        ids = [await stage.submit("held") for _ in range(8)]
        await gate.reach(4)

        await stated(stage, await order(stage, OrderedChange(slots=2)))

        assert gate.running == 4
        gate.most = 0
        gate.let(3)  # two that were too many, and one whose slot takes the next job
        await until(lambda: gate.started == 5, what="the fifth")
        assert gate.running == 2
        gate.let(8)
        await stage.heard.wait(Fact.SUCCEEDED, 8)
        assert gate.most <= 2, "after the first four no more than two at once"
        assert [(await read(engine, each)).attempt for each in ids] == [1] * 8


async def test_a_queue_is_added_and_removed_and_what_waits_goes_back(engine: AnyEngine, gate: Gate) -> None:
    async with working(engine, held(gate), queues={"mail": 1}, config=SLOW) as stage:
        other = await stage.submit("held", queue="other")
        await stated(stage, await order(stage, OrderedChange(queues={"other": 2})))
        await gate.reach(1)

        await stated(stage, await order(stage, OrderedChange(remove=["other"])))
        late = await stage.submit("held", queue="other")
        mail = await stage.submit("held")
        await gate.reach(2)
        gate.let(100)
        assert (await stage.ended(other)).state == "succeeded"
        assert (await stage.ended(mail)).state == "succeeded"
        assert (await read(engine, late)).state == "queued"


@pytest.mark.parametrize(
    "change", [OrderedChange(remove=["mail"]), OrderedChange(paused=True)], ids=["removed", "paused"]
)
async def test_what_waits_for_a_slot_is_handed_back_uncounted(
    engine: AnyEngine, gate: Gate, change: OrderedChange, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "STALE_S", 3600.0)  # nothing is released for another reason

    async with working(engine, held(gate), queues={"mail": 1, "docs": 1}, config=SLOW) as stage:
        mail = next(pool for pool in stage.worker._parts.roster.pools if pool.queues == ("mail",))
        mail._buffer = 100  # as after a time of short jobs: only then are jobs claimed beyond the free slots
        ids = [await stage.submit("held") for _ in range(5)]
        await until(lambda: stage.worker.running == 5, what="four that wait for the slot")

        await order(stage, change)

        word = "paused" if change.paused else "changed"
        await stage.heard.wait(Fact.RELEASED, 4, reason=f"the worker was {word} before it started")
        found = [await read(engine, each) for each in ids]
        assert sorted(each.state for each in found) == ["queued"] * 4 + ["running"]
        assert {each.failures for each in found} == {0}
        gate.let(100)


async def test_a_paused_worker_claims_nothing_until_it_is_resumed(engine: AnyEngine, gate: Gate) -> None:
    gate.let(100)
    async with working(engine, held(gate), config=SLOW) as stage:
        await stage.run("held")
        found = await stated(stage, await order(stage, OrderedChange(paused=True)))
        assert found.stated is not None
        assert found.stated.paused

        job_id = await stage.submit("held")
        version = await order(stage, OrderedChange(queues={"other": 1}))
        await stated(stage, version)
        assert [claimer._may_claim() for claimer in stage.worker._parts.claims.claimers] == [False, False]
        other = await stage.submit("held", queue="other")
        assert (await read(engine, job_id)).state == "queued"
        assert (await read(engine, other)).state == "queued"

        await order(stage, OrderedChange(paused=False))
        assert (await stage.ended(job_id)).attempt == 1
        assert (await stage.ended(other)).attempt == 1


async def test_an_order_is_seen_at_the_renewal_without_any_wake_up(engine: AnyEngine, gate: Gate) -> None:
    async with working(engine, held(gate), queues={"mail": 1}, config=quick(renew_s=0.3)) as stage:
        await stage.submit("held")
        await stage.submit("held")
        await gate.reach(1)
        asked = time.monotonic()
        await order(stage, OrderedChange(slots=2), wake=False)
        await gate.reach(2)
        assert time.monotonic() - asked < 20
        gate.let(100)


async def test_the_worker_is_changed_from_inside_by_the_same_order(engine: AnyEngine, gate: Gate) -> None:
    async with working(engine, held(gate), queues=["mail"], config=SLOW) as stage:
        for _ in range(8):
            await stage.submit("held")
        await gate.reach(8)
        version = await stage.worker.change(slots=3, queues={"docs": None}, reason="quieter")
        found = await stated(stage, version)
        assert found.wanted is not None
        assert [(each.queues, each.slots) for each in found.wanted.slot_groups] == [(("mail", "docs"), 3)]
        assert (found.wanted_by, found.wanted_reason) == (f"worker {stage.worker.name}", "quieter")
        with pytest.raises(InvalidInput, match="no queue would be left"):
            await stage.worker.change(remove=["mail", "docs"])
        gate.let(100)


async def test_of_two_operators_one_wins_and_the_other_is_told(engine: AnyEngine) -> None:
    async def nothing() -> None: ...

    async with working(engine, nothing, queues={"mail": 1}, config=SLOW) as stage:
        holder = stage.worker.holder or ""
        first = store.ordering(holder, OrderedChange(slots=2), actor="ada", version=0)
        second = store.ordering(holder, OrderedChange(slots=3), actor="bob", version=0)
        assert (await arun(first, engine.arun)).version == 1
        with pytest.raises(OrderRefused, match=r"(?s)changed first by ada.*mail:2") as caught:
            await arun(second, engine.arun)
        assert caught.value.version == 1


async def test_a_worker_told_to_leave_finishes_what_runs_and_ends(engine: AnyEngine, gate: Gate) -> None:
    worker = worker_of(engine, held(gate), queues={"mail": 1}, config=SLOW)
    stage = Stage(engine, worker)
    running = asyncio.create_task(worker.run())
    job_id = await stage.submit("held")
    await gate.reach(1)
    late = await stage.submit("held")

    await order(stage, OrderedChange(leave=Leave()))
    await until(lambda: worker._parts.life.leaving, what="leaving")
    with pytest.raises(OrderRefused, match="is leaving"):
        await order(stage, OrderedChange(slots=5))
    gate.let(100)
    await asyncio.wait_for(running, PATIENCE_S)

    assert (await read(engine, job_id)).state == "succeeded"
    assert (await read(engine, late)).state == "queued"


async def test_a_leaving_worker_is_hurried_by_a_later_order(engine: AnyEngine, gate: Gate) -> None:
    worker = worker_of(engine, held(gate), queues={"mail": 1}, config=SLOW)
    stage = Stage(engine, worker)
    running = asyncio.create_task(worker.run())
    job_id = await stage.submit("held")
    await gate.reach(1)
    await order(stage, OrderedChange(leave=Leave()))
    await until(lambda: worker._parts.life.leaving, what="leaving")

    await order(stage, OrderedChange(leave=Leave(0.0)))
    await asyncio.wait_for(running, PATIENCE_S)

    job = await read(engine, job_id)
    assert (job.state, job.failures, gate.running) == ("queued", 0, 0)
    assert "released" in await kinds(engine, job_id)


async def test_an_order_does_not_wake_one_that_is_stopping(engine: AnyEngine, gate: Gate) -> None:
    worker = worker_of(engine, held(gate), queues={"mail": 1}, config=SLOW)
    stage = Stage(engine, worker)
    running = asyncio.create_task(worker.run())
    job_id = await stage.submit("held")
    await gate.reach(1)
    await stated(stage, await order(stage, OrderedChange(paused=True)))
    worker.request_stop()
    await until(lambda: worker._parts.life.leaving, what="leaving")

    await stated(stage, await order(stage, OrderedChange(paused=False)))

    assert [claimer._may_claim() for claimer in worker._parts.claims.claimers] == [False]
    gate.let(1)
    await asyncio.wait_for(running, PATIENCE_S)
    assert (await read(engine, job_id)).state == "succeeded"


async def test_a_limit_on_the_leaving_hands_back_what_still_runs(engine: AnyEngine, gate: Gate) -> None:
    worker = worker_of(engine, held(gate), queues={"mail": 1}, config=SLOW)
    stage = Stage(engine, worker)
    async with worker:
        job_id = await stage.submit("held")
        await gate.reach(1)
        await order(stage, OrderedChange(leave=Leave(0.2)))
        await asyncio.wait_for(worker.wait_stopped(), PATIENCE_S)  # in a `with` block too
    assert (await read(engine, job_id)).state == "queued"


async def test_what_was_ordered_outlives_a_registration(engine: AnyEngine, gate: Gate) -> None:
    """Declared dead, it registers anew: the order goes on, even one that it had not seen."""
    async with working(engine, held(gate), queues={"mail": 1}, config=SLOW) as stage:
        await stated(stage, await order(stage, OrderedChange(paused=True)))
        former = stage.worker.holder
        assert former is not None
        version = await order(stage, OrderedChange(slots=3), wake=False)
        with engine.session() as session:
            table = "fencerow.workers" if engine.dialect == "postgres" else "fencerow_file.fencerow_workers"
            session.connection.execute(f"UPDATE {table} SET state = 'dead'")

        stage.worker._parts.lease.renew_now()
        await until(lambda: stage.worker.holder not in (None, former), what="a new registration")
        stage.worker._parts.lease.renew_now()
        found = await stated(stage, version)

        assert found.id != former
        assert found.stated is not None
        assert found.stated.paused
        assert [each.slots for each in found.stated.slot_groups] == [3]
        again = await order(stage, OrderedChange(paused=False))
        assert again == version + 1
        await stage.submit("held")
        await gate.reach(1)
        gate.let(100)


@pytest.mark.parametrize(
    "change", [OrderedChange(remove=["mail"]), OrderedChange(paused=True)], ids=["removed", "paused"]
)
async def test_the_answer_to_a_claim_that_was_under_way_is_handed_back(
    engine: AnyEngine, gate: Gate, change: OrderedChange
) -> None:
    """The order comes while a claim is in flight: what it brings does not start here."""
    slow = Slow(engine, "claim")
    async with working(slow, held(gate), queues={"mail": 1, "docs": 1}, config=SLOW) as stage:  # type: ignore[arg-type]
        job_id = await stage.submit("held")
        await asyncio.wait_for(slow.sent.wait(), PATIENCE_S)
        await stated(stage, await order(stage, change))
        slow.answer.set()
        await stage.heard.wait(Fact.RELEASED, 1, job_id=job_id)
        assert (await read(engine, job_id)).state == "queued"
        assert gate.started == 0


class Slow:
    """An engine whose first operation of one name that brought anything is answered late."""

    def __init__(self, engine: AnyEngine, name: str) -> None:
        self._engine = engine
        self._name: str | None = name
        self.sent, self.answer = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def begin(self, *_: Any) -> bool:
        return False  # all goes by `arun`

    async def arun(self, operation: Operation[Any]) -> Any:
        answer = await self._engine.arun(operation)
        if operation.name == self._name and answer:
            self._name = None
            self.sent.set()
            await self.answer.wait()
        return answer


async def test_a_lost_answer_to_an_order_is_settled_by_reading(engine: AnyEngine) -> None:
    async def nothing() -> None: ...

    async with working(engine, nothing, queues={"mail": 1}, config=SLOW) as stage:
        holder = stage.worker.holder or ""
        faulty = Faulty(engine)
        faulty.lose_reply("order_worker")
        given = await arun(store.ordering(holder, OrderedChange(slots=2), actor="ada"), faulty.arun)
        assert (given.version, given.given) == (1, True)
        faulty.refuse("order_worker", OutcomeUnknown("it did not happen, and nobody knows"))
        with pytest.raises(OrderRefused):
            await arun(store.ordering(holder, OrderedChange(slots=3), actor="ada"), faulty.arun)
        assert (await record(stage)).wanted_version == 1


async def test_one_that_does_not_run_takes_no_orders(lite: AnyEngine) -> None:
    async def nothing() -> None: ...

    worker = worker_of(lite, nothing)
    with pytest.raises(OrderRefused, match="no registration"):
        await worker.change(slots=3)
    async with worker:
        pass
    with pytest.raises(OrderRefused, match="no registration"):
        await worker.change(slots=3)


async def test_many_changes_leave_neither_slots_nor_claimers_behind(lite: AnyEngine, gate: Gate) -> None:
    async with working(lite, held(gate), queues={"mail": 2}, config=SLOW) as stage:
        claims, loops = stage.worker._parts.claims, stage.worker._parts.loops
        before = len(loops.tasks), len(loops._loops)
        for _ in range(5):
            await stated(stage, await order(stage, OrderedChange(queues={"docs": 3, "mail": 4})))
            await stated(stage, await order(stage, OrderedChange(remove=["docs"], queues={"mail": 1})))
        await until(lambda: len(stage.worker._parts.life.tasks) == 1, what="one slot")
        await until(lambda: (len(loops.tasks), len(loops._loops)) == before, what="one loop of a claimer")
        assert len(claims.claimers) == 1
        assert len(claims._dismissed) <= 1, "the last one is forgotten with the next"
        job_id = await stage.submit("held")
        await gate.reach(1)
        gate.let(1)
        assert (await stage.ended(job_id)).state == "succeeded"
