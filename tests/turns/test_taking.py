"""A hand-over that claims what it gives for free slots of its own worker, in one write."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from fencerow import App
from fencerow.core.model.job import Claimed
from fencerow.core.store import store
from fencerow.core.store.claims import claim_given
from fencerow.core.worker.taking import SlotTaker
from fencerow.db.run import Operation, Steps, operation
from fencerow.limits import Limit
from fencerow.limits.limits import define
from fencerow.operators.queues import pause_queue
from fencerow.testing.clock import clock_of
from fencerow.turns.handing import HandedOver, hand_over, taking_over
from tests.core.app.conftest import app, url  # noqa: F401 (fixtures)
from tests.core.store.stage import rows
from tests.core.worker.stage import worker_of
from tests.kit.jobs import AnyEngine, claim, new_job, read, register, submit
from tests.kit.pace import PATIENCE_S
from tests.kit.taking import Slots
from tests.turns.test_who_goes import limited


def taken(engine: AnyEngine, slots: int, holder: str | None = None) -> HandedOver:
    return engine.run(taking_over(Slots(holder or register(engine), slots)))


def ids(jobs: object) -> list[str]:
    return [each.id for each in jobs]  # type: ignore[attr-defined]


@pytest.mark.parametrize("room", [2, 3], ids=["as much room", "more room"])
def test_slots_get_the_most_urgent_at_all_gates_and_the_others_are_queued(
    engine: AnyEngine, room: int
) -> None:
    """Whatever room there is at each: gates with as much of it are looked at together."""
    limited(engine, Limit("a", at_once=room), Limit("b", at_once=2))
    low = submit(engine, *(new_job(limits=("a",)) for _ in range(2)))
    high = submit(engine, *(new_job(limits=("b",), priority=5) for _ in range(3)))

    handed = taken(engine, 3)

    assert ids(handed.claimed) == [*high[:2], low[0]]
    assert ids(handed.queued) == [low[1]]
    assert [read(engine, each).state for each in handed_ids(handed)] == [*["running"] * 3, "queued"]
    assert {job.attempt for job in handed.claimed} == {1}
    assert read(engine, high[2]).state == "waiting"


def handed_ids(handed: HandedOver) -> list[str]:
    return [*ids(handed.claimed), *ids(handed.queued)]


def test_where_no_other_worker_lives_nobody_gets_a_turn_for_whom_there_is_no_slot(engine: AnyEngine) -> None:
    limited(engine, Limit("a", at_once=9))
    sent = submit(engine, *(new_job(limits=("a",)) for _ in range(3)))
    holder = register(engine)

    handed = engine.run(taking_over(Slots(holder, 2, alone=True)))

    assert (ids(handed.claimed), ids(handed.queued)) == (sent[:2], [])
    assert handed.more
    assert read(engine, sent[2]).state == "waiting"
    assert ids(engine.run(hand_over()).queued) == sent[2:], "nothing tells another worker that a turn is free"


def test_what_is_claimed_with_its_turn_counts_under_the_limit_until_it_ends(engine: AnyEngine) -> None:
    limited(engine, Limit("a", at_once=1))
    first, second = submit(engine, *(new_job(limits=("a",)) for _ in range(2)))
    holder = register(engine)

    assert ids(taken(engine, 5, holder).claimed) == [first]
    engine.run(store.submit_gated([new_job(limits=("a",))]))
    assert taken(engine, 5, holder).claimed == []
    assert engine.run(store.succeed([store.Success(first, 1, "1")], holder=holder))

    assert ids(taken(engine, 5, holder).claimed) == [second]
    assert claim(engine, holder, limit=5) == []


def test_who_needs_another_gate_goes_where_none_was_looked_for(engine: AnyEngine) -> None:
    limited(engine, Limit("a", at_once=5), Limit("b", at_once=5))
    alike, needs_two = submit(engine, new_job(limits=("b",)), new_job(limits=("b", "a")))

    first = engine.run(hand_over(["limit:b"], beside=0))
    while first.more:
        first = engine.run(hand_over())

    assert {read(engine, each).state for each in (alike, needs_two)} == {"queued"}


@operation()
def claimed_given(queue: str, given: list[str], holder: str) -> Steps[list[str]]:
    return ids((yield from claim_given(queue, given, holder=holder, names=["send"], margin_s=1.0)))


@pytest.mark.parametrize("why", ["suspended", "queue", "name", "label", "expired", "paused", "dead"])
def test_what_may_not_be_claimed_with_its_turn_is_left(engine: AnyEngine, why: str) -> None:
    limited(engine, Limit("a", at_once=9))
    other: dict[str, dict[str, Any]] = {
        "name": {"name": "other"},
        "label": {"affinity": "gpu"},
        "expired": {"expires_s": 5.0},
        "queue": {"queue": "post"},
    }
    (job_id,) = submit(engine, new_job(limits=("a",), **other.get(why, {})))
    holder = register(engine)
    table = "fencerow.jobs" if engine.dialect == "postgres" else "fencerow_jobs"
    if why == "suspended":
        rows(engine, f"UPDATE {table} SET gate = NULL")
    if why == "paused":
        engine.run(pause_queue("mail", actor=None))
    if why == "expired":
        clock_of(engine).advance(6.0)
    if why == "dead":
        holder = "00000000-0000-0000-0000-000000000001"

    assert engine.run(claimed_given("mail", [job_id], holder)) == []


async def test_a_worker_claims_what_it_gives(app: App, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """All of them run once, and not all of them were written to stand in a lane first."""
    ran: list[int] = []
    taken: list[int] = []
    accepted = SlotTaker.claim

    def counted(self: SlotTaker, queue: str, ids: Sequence[str], holder: str) -> Steps[list[Claimed]]:
        taken.append(len(ids))
        return accepted(self, queue, ids, holder)

    monkeypatch.setattr(SlotTaker, "claim", counted)

    @app.job(limits="a")
    async def send(number: int) -> None:
        ran.append(number)

    await app.client.limits.adefine(Limit("a", at_once=50))
    await app.asubmit_many([send.call(number) for number in range(300)])
    async with asyncio.timeout(PATIENCE_S):
        await app.worker().run(until_idle=True)

    assert sorted(ran) == list(range(300))
    assert taken


class Late:
    """An engine whose first look that claims is answered when `answer` is set."""

    def __init__(self, engine: AnyEngine) -> None:
        self._engine = engine
        self.claimed, self.answer = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def arun(self, operation: Operation[Any]) -> Any:
        result = await self._engine.arun(operation)
        if operation.name == "hand_over" and result.claimed:
            self.claimed.set()
            await self.answer.wait()
        return result


async def test_a_worker_ends_for_want_of_jobs_only_behind_the_answer_to_its_look(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []
    monkeypatch.setattr(
        "fencerow.core.worker.taking._is_dry", lambda *_: True
    )  # it looks before its claimer has

    async def send() -> None:
        ran.append(1)

    await engine.arun(define(Limit("a", at_once=1), actor=None, reason=None))
    await engine.arun(store.submit_gated([new_job("{}", limits=("a",)) for _ in range(20)]))
    late = Late(engine)
    running = asyncio.create_task(worker_of(late, send).run(until_idle=True))  # type: ignore[arg-type]
    async with asyncio.timeout(PATIENCE_S):
        await late.claimed.wait()
        await asyncio.sleep(1.5)  # in which it would find that nothing is due and nothing is held
        late.answer.set()
        await running

    assert ran == [1] * 20
