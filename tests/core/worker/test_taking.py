"""What a worker believes while an operation of a chore claims for its slots."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fencerow.core.errors import OutcomeUnknown
from fencerow.core.model.job import Claimed
from fencerow.core.worker.lease import WorkerLease
from fencerow.core.worker.pool import PREFETCH_MAX, Pool
from fencerow.core.worker.taking import SlotTaker, SlotTaking
from fencerow.db.engine import Engine
from fencerow.db.steady import steady
from tests.core.worker.stage import pool_of

LOST = OutcomeUnknown("it broke", "it may be stored", "look")


def taker(pool: Pool, *, is_claiming: bool = False) -> SlotTaker:
    """Its lanes were looked at, and nothing was there."""
    for view in pool.look.views.values():
        view.swept([], 1, time.monotonic())
    return SlotTaker(
        pool,
        ["send"],
        lambda: not is_claiming,
        lambda *_: None,
        margin_s=1.0,
    )


def held() -> WorkerLease:
    lease = WorkerLease(30.0, 10.0)
    lease.begin("holder", steady())
    return lease


async def test_an_answer_that_was_lost_is_in_doubt_and_keeps_no_slot() -> None:
    pool, doubts = pool_of(5), list[BaseException]()
    taking: SlotTaking

    async def lost(_: object) -> Any:
        next(taking.claim("mail", ["1", "2"], 1))
        assert pool.free() == 3
        raise LOST

    engine = cast("Engine", SimpleNamespace(arun=lost))
    taking = SlotTaking(engine, held(), [taker(pool)], doubts.append, lived_alone=True)

    with pytest.raises(OutcomeUnknown):
        await taking.run(cast("Any", None), lambda _: [])

    assert doubts == [LOST]
    assert taking.answered.done()
    assert pool.free() == 5


@pytest.mark.parametrize("why", ["more", "claiming", "suspect", "to be looked at"])
async def test_nothing_is_taken_past_what_is_known_to_be_due(why: str) -> None:
    pool = pool_of(5)
    takes = taker(pool, is_claiming=why == "claiming")
    if why == "more":
        pool.look.hint("mail", 0, None)
    if why == "to be looked at":
        pool.look.views["mail"]._due_at = 0.0  # what was to come then is not known to be there
    if why == "suspect":
        pool.look.views["mail"].suspects.due_at = 0.0

    assert takes.wanted("mail", 5) == 0


async def test_no_more_is_taken_ahead_than_the_share_of_this_worker() -> None:
    pool = pool_of(5)
    pool._buffer = 100
    takes = taker(pool)

    assert (takes.wanted("mail", 2), takes.wanted("mail", 30), takes.wanted("mail", 900)) == (5, 30, 105)


@pytest.mark.parametrize("why", ["", "others lived", "more"])
async def test_a_worker_that_lives_alone_lets_no_more_go_than_its_slots_want(why: str) -> None:
    pool = pool_of(5)
    takes = taker(pool)
    if why == "more":
        pool.look.hint("mail", 0, None)
    alone = why != "others lived"
    taking = SlotTaking(cast("Engine", None), held(), [takes], lambda _: None, lived_alone=alone)

    assert taking.most() == (PREFETCH_MAX if why else 5)


@pytest.mark.parametrize("workers", [1, 2])
async def test_whether_a_worker_lives_alone_is_found_by_a_look_that_may_claim(workers: int) -> None:
    takes = taker(pool_of(5))
    taking = SlotTaking(cast("Engine", None), held(), [takes], lambda _: None, lived_alone=True)
    assert not taking.lives_alone

    next(taking.claim("mail", ["1"], workers))

    assert taking.lives_alone == (workers == 1)


async def test_while_it_claims_the_claimer_claims_nothing_and_goes_on_after_it() -> None:
    """It was claimed first and has to start first, or a death would be laid at the wrong doors. And if it brings
    nothing, nobody else tells the claimer that there is room."""
    pool = pool_of(5)
    takes = taker(pool)
    next(takes.claim("mail", ["1"], "holder"))

    assert pool.wanted() == 0
    pool.await_room()
    takes.over()

    assert pool.wanted() == 5
    assert pool.look.woken.is_set()


async def test_what_comes_when_the_queue_is_served_no_more_reaches_its_taker() -> None:
    pool, accepted = pool_of(5), list[tuple[str, int]]()
    takes = taker(pool)
    takes.accept = lambda queue, jobs, *_: accepted.append((queue, len(jobs)))
    job = cast("Claimed", SimpleNamespace(queue="mail"))
    taking: SlotTaking

    async def changed(_: object) -> list[Claimed]:
        next(taking.claim("mail", ["1"], 1))
        pool.change(["docs"], 5)
        return [job]

    engine = cast("Engine", SimpleNamespace(arun=changed))
    taking = SlotTaking(engine, held(), [takes], lambda _: None, lived_alone=True)
    await taking.run(cast("Any", None), lambda jobs: jobs)

    assert accepted == [("mail", 1)]
