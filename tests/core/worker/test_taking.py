"""What a worker believes while an operation of a chore claims for its slots."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from fencerow.core.errors import OutcomeUnknown
from fencerow.core.worker.lease import WorkerLease
from fencerow.core.worker.pool import Pool
from fencerow.core.worker.taking import Taker, Taking
from fencerow.db.clock import CarriedClock
from fencerow.db.engine import Engine
from fencerow.db.steady import steady
from tests.core.worker.stage import pool_of

LOST = OutcomeUnknown("it broke", "it may be stored", "look")


def taker(pool: Pool, lease: WorkerLease, *, is_claiming: bool = False) -> Taker:
    return Taker(
        pool,
        lease,
        CarriedClock(),
        ["send"],
        lambda: True,
        lambda: is_claiming,
        lambda *_: None,
        margin_s=1.0,
    )


def held() -> WorkerLease:
    lease = WorkerLease(30.0, 10.0)
    lease.begin("holder", steady())
    return lease


async def test_an_answer_that_was_lost_is_in_doubt_and_keeps_no_slot() -> None:
    pool, doubts = pool_of(5), list[BaseException]()
    taking: Taking

    async def lost(_: object) -> Any:
        next(taking.claim("mail", ["1", "2"], 1))
        assert pool.free() == 3
        raise LOST

    engine = cast("Engine", SimpleNamespace(arun=lost))
    taking = Taking(engine, held(), [taker(pool, held())], doubts.append)

    with pytest.raises(OutcomeUnknown):
        await taking.run(cast("Any", None), lambda _: [])

    assert doubts == [LOST]
    assert taking.answered.done()
    assert pool.free() == 5


@pytest.mark.parametrize("why", ["more", "claiming", "suspect"])
async def test_nothing_is_taken_past_what_is_known_to_be_due(why: str) -> None:
    pool = pool_of(5)
    takes = taker(pool, held(), is_claiming=why == "claiming")
    if why == "more":
        pool.look.hint("mail", 0, None)
    if why == "suspect":
        pool.look.views["mail"].suspects.due_at = 0.0

    assert takes.wanted("mail", 5) == 0


async def test_no_more_is_taken_ahead_than_the_share_of_this_worker() -> None:
    pool = pool_of(5)
    pool._buffer = 100
    takes = taker(pool, held())

    assert (takes.wanted("mail", 2), takes.wanted("mail", 30), takes.wanted("mail", 900)) == (5, 30, 105)
