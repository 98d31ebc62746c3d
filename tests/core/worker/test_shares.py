"""Shares of a queue in a worker: turns from the declaration of a job to the start of its handler."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from fencerow import Client
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import NewJob, QueueLane
from fencerow.core.model.lane import ANYBODYS, SHARE, Ageing
from fencerow.core.model.turns import Ring, RingMember
from fencerow.core.store import store
from fencerow.core.store.claims import Mark
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.database_time import STORED_US_MAX
from fencerow.core.worker.marks import QueueView
from fencerow.core.worker.pool import Pool
from fencerow.limits import Limit
from fencerow.operators.queues import pause_queue
from fencerow.testing.clock import clock_of
from tests.core.worker.stage import Free, handler, job_of, quick, until, worker_of
from tests.core.worker.test_parts import claimed
from tests.kit import jobs
from tests.kit.jobs import QUEUE, AnyEngine, register, submit

MANY = 300


def job(share: str | None, **changes: Any) -> NewJob:
    made = job_of("noted", {"share": share or "-"}, **changes)
    return NewJob(new_id(), made.args, made.args_bytes, made.template, share=share)


@pytest.mark.parametrize("slots", [1, 4])
async def test_who_comes_late_with_ten_runs_between_the_many(engine: AnyEngine, slots: int) -> None:
    ran: list[str] = []

    async def noted(share: str) -> None:
        ran.append(share)

    await engine.arun(store.submit([job("many") for _ in range(MANY)]))
    await engine.arun(store.submit([job("few") for _ in range(10)]))
    await Client(engine).limits.adefine(Limit(f"queue:{QUEUE}", at_once=slots))

    async with worker_of(engine, noted, queues={QUEUE: slots}, config=quick()):
        await until(lambda: len(ran) == MANY + 10, what="all have run")

    assert ran.index("few") <= 1 + slots
    assert max(place for place, share in enumerate(ran) if share == "few") <= 20 + 2 * slots


@pytest.mark.parametrize("limited", [False, True])
async def test_nothing_is_stranded_where_all_kinds_are_mixed(engine: AnyEngine, limited: bool) -> None:
    """Shares, jobs without one, several lanes, and in front of them jobs that nobody here knows."""
    ran: list[str] = []

    async def noted(share: str) -> None:
        ran.append(share)

    submit(engine, *(jobs.new_job(share=share, priority=level) for share in "au" for level in (0, 5)))
    mixed = [job(share, priority=level) for level in (0, 5, 3) for share in ("a", None, "b", None)]
    await engine.arun(store.submit(mixed))
    await engine.arun(store.submit([job(None, priority=-1), job("a", priority=-2)]))
    if limited:
        await Client(engine).limits.adefine(Limit(f"queue:{QUEUE}", at_once=2))

    async with worker_of(engine, noted, queues={QUEUE: 1}, config=quick()):
        await until(lambda: len(ran) == len(mixed) + 2, what="all have run")

    assert ran[-1] == "a" and ran[-2] == "-"


def counted(name: str, verb: Callable[..., Any], calls: Counter[str]) -> Callable[..., Any]:
    def called(*given: Any, **named: Any) -> Any:
        calls[name] += 1
        return verb(*given, **named)

    return called


def shared(*lanes: QueueLane) -> QueueView:
    view = QueueView(QUEUE, 1.0)
    view.swept(lanes, 1_000, time.monotonic())
    return view


def test_shares_of_a_priority_are_claimed_by_themselves() -> None:
    view = shared(QueueLane(5, 1), QueueLane(4, 1), QueueLane(3, 1, SHARE), QueueLane(3, 1), QueueLane(2, 1))
    assert view.to_look_at(10) is None

    taken = view.next(10)
    assert [(mark.priority, mark.count) for mark in taken] == [(5, 10), (4, 10)]
    view.claimed([], 10, lanes=taken)
    found = view.to_look_at(10)
    assert found is not None and (found[0].priority, found[0].lane) == (3, SHARE)
    view.looked(3, Ring((RingMember("share:a", 2, 7),), True, "share:a"), time.monotonic())
    assert view.to_look_at(10) is None

    taken = view.next(5)
    assert {(mark.lane, mark.run_at_us, mark.count) for mark in taken} in (
        {("share:a", 7, 4), (ANYBODYS, 0, 1)},
        {("share:a", 7, 3), (ANYBODYS, 0, 2)},
    )
    view.claimed([], 5, lanes=taken)
    assert [mark.priority for mark in view.next(10)] == [2], "nothing is left above it"
    view.claimed([], 10, lanes=view.next(10))
    assert view.next(10) == [] and not view.has_more


def test_a_share_keeps_its_mark_from_one_claim_to_the_next_until_a_look() -> None:
    view = shared(QueueLane(0, 1, SHARE))
    view.looked(0, Ring((RingMember("share:a", 1, 7),), True, "share:a"), time.monotonic())
    found = structs.replace(claimed(run_at_us=9), share="a", lane="share:a")
    assert view.claimed([found], 1, lanes=view.next(1)) == [found]
    (mark,) = view.next(1)
    assert (mark.lane, mark.run_at_us, mark.id) == ("share:a", 9, found.id)

    view.hint(0, 5, "share:b")
    assert view.to_look_at(1) is not None, "one that is not known may have come"


def test_labels_of_the_worker_go_before_the_shares_of_their_priority() -> None:
    view = shared(QueueLane(3, 1, SHARE), QueueLane(3, 1, "label:gpu"), QueueLane(1, 1, "label:gpu"))
    assert view.to_look_at(1) is None
    taken = view.next(1)
    assert [(mark.priority, mark.lane) for mark in taken] == [(3, "label:gpu")]
    view.claimed([], 1, lanes=taken)
    assert view.to_look_at(1) is not None


def test_where_no_share_has_a_due_job_the_next_one_is_known() -> None:
    view = shared(QueueLane(0, 1, SHARE))
    view.looked(0, Ring((), True, "share:z", later_us=60_000_000), time.monotonic())
    assert not view.has_more and view.marks() == []


def test_after_a_look_found_nothing_the_next_begins_at_the_hint() -> None:
    """Beside very many jobs that nobody knows here each look from the beginning is dear."""
    view = shared(QueueLane(0, 1, SHARE))
    empty = Ring((), True, "share:z")

    def from_us() -> int:
        found = view.to_look_at(1)
        assert found is not None
        return found[1].from_us

    assert from_us() == 0
    sent = time.monotonic()
    view.looked(0, empty, sent)
    view.hint(0, 900, "share:a")
    assert from_us() == 0, "a second earlier, for its commit may have taken so long"
    view.looked(0, empty, time.monotonic())
    view.swept([QueueLane(0, 1, SHARE)], 90_000_000, time.monotonic())
    view.looked(0, empty, time.monotonic())
    view.hint(0, 80_000_000, "share:a")
    assert from_us() == 80_000_000 - 1 - STORED_US_MAX
    view.hint(0, 70_000_000, "share:b")
    assert from_us() == 70_000_000 - 1 - STORED_US_MAX
    view.hint(0, 89_000_000, "share:b")
    assert from_us() == 70_000_000 - 1 - STORED_US_MAX
    view.swept([QueueLane(0, 1, SHARE)], 90_000_000, time.monotonic())
    assert from_us() == 0


def test_a_hint_during_a_look_at_the_shares_is_not_forgotten_by_its_answer() -> None:
    view = shared(QueueLane(0, 1, SHARE))
    sent = time.monotonic()
    view.hint(0, 900, "share:a")
    view.looked(0, Ring((), True, "share:z"), sent)
    assert view.has_more and view.to_look_at(1) is not None

    view.looked(0, Ring((), True, "share:z"), time.monotonic())
    assert not view.has_more


def test_hints_during_each_look_at_the_shares_keep_nobody_from_a_claim() -> None:
    """Where shares are submitted to all the time, a hint comes during each look."""
    view = shared(QueueLane(0, 1, SHARE))
    sent = view.look_begins(0)
    view.hint(0, 900, "share:b")
    view.looked(0, Ring((RingMember("share:a", 1, 7),), True, "share:a"), sent)
    assert view.to_look_at(1) is None
    taken = view.next(1)
    assert [mark.lane for mark in taken] == ["share:a"]

    view.claimed([structs.replace(claimed(), lane="share:a")], 1, time.monotonic(), taken)
    assert view.has_more and view.to_look_at(1) is not None, "then what the hint told of is looked for"


def test_a_hint_during_a_look_makes_nobody_forget_the_shares_that_were_found_before() -> None:
    view = shared()
    view.swept([QueueLane(0, 1, SHARE)], 95_000_000, time.monotonic())
    view.looked(0, Ring((RingMember("share:a", 1, 7),), False, "share:a"), view.look_begins(0))
    view.claimed([structs.replace(claimed(), lane="share:a")], 1, time.monotonic(), view.next(1))
    assert view.to_look_at(1) is not None
    sent = view.look_begins(0)
    view.hint(0, 90_000_000, "share:b")
    view.looked(0, Ring((), True, "share:a"), sent)

    assert [mark.lane for mark in view.next(1)] == ["share:a"]


def test_a_look_without_an_answer_is_repeated_from_the_beginning() -> None:
    view = shared()
    view.swept([QueueLane(0, 1, SHARE)], 95_000_000, time.monotonic())
    view.looked(0, Ring((), True, "share:z"), view.look_begins(0))
    view.hint(0, 90_000_000, "share:a")
    view.look_begins(0)
    view.hint(0, 80_000_000, "share:a")
    view.look_begins(0)
    found = view.to_look_at(1)
    assert found is not None and found[1].from_us == 0


async def test_many_shares_are_drained_with_few_looks(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is known of the shares holds from one claim to the next."""
    ran: list[str] = []
    looks = Counter[str]()
    for name in ("ring", "claim"):
        monkeypatch.setattr(store, name, counted(name, getattr(store, name), looks))

    async def noted(share: str) -> None:
        ran.append(share)

    await engine.arun(store.submit([job(f"s{number % 20}") for number in range(200)]))
    async with worker_of(engine, noted, queues={QUEUE: 4}, config=quick()):
        await until(lambda: len(ran) == 200, what="all have run")
    assert looks["claim"] > looks["ring"]


@pytest.mark.parametrize("why", ["unknown", "mixed", "paused", "expired"])
async def test_shares_of_which_nothing_can_be_claimed_cost_no_claims(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """One look steps over all of them: a known job beside them is claimed by the first claim."""
    ran: list[str] = []
    asked = Counter[str]()

    async def noted(share: str) -> None:
        ran.append(share)

    def beside(share: str) -> NewJob:
        if why == "paused":
            return job(share)
        if why == "expired":
            return job(share, expires_s=60.0)
        return jobs.new_job(share=share, queue=QUEUE)

    shares = [f"s{number:03}" for number in range(300)]
    await engine.arun(store.submit([beside(share) for share in shares]))
    if why == "paused":
        engine.run(pause_queue(QUEUE, actor=None, reason=None))
    if why == "expired":
        clock_of(engine).advance(120)
    for name in ("ring", "claim", "lanes"):
        monkeypatch.setattr(store, name, counted(name, getattr(store, name), asked))

    async with worker_of(engine, noted, queues={QUEUE: 4}, config=quick(sweep_s=3600.0)):
        await until(lambda: asked["lanes"] > 3, what="it has looked several times")
        assert (asked["claim"], asked["ring"] <= asked["lanes"]) == (0, True)
        if why != "paused":
            share = "s150" if why == "mixed" else "z"
            await engine.arun(store.submit([job(share)]))
            await until(lambda: ran == [share], what="the one that is known")
            assert asked["claim"] <= 2


async def test_a_buffer_keeps_the_order_of_the_turns(engine: AnyEngine) -> None:
    """By age the many old jobs of one share would go first in it."""

    async def noted(share: str) -> None: ...

    submit(engine, job("a"), job("b"))
    lanes = [Mark(0, lane="share:a"), Mark(0, lane="share:b")]
    taken_in = jobs.claim(engine, register(engine), names=["noted"], marks=lanes)
    pool = Pool((QUEUE,), 2, 1.0, 1.0, Free(), Ageing(600.0))
    pool.open = 2
    for each in reversed(taken_in):
        attempt = Attempt(each, "holder", handler(noted))
        attempt.line_us = 1
        pool.put(attempt)

    taken = [await pool.get() for _ in taken_in]

    assert [each.claimed.share for each in taken if each is not None] == ["b", "a"]
