"""On PostgreSQL a success passes the turn of its key on to the next that waits, and leaves all else to a look."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.core.store import store
from fencerow.core.store.attempts import Success
from fencerow.db.postgres import PostgresEngine
from fencerow.limits import Limit, limits
from fencerow.operators import queues as queue_rows
from fencerow.turns import handing, looks
from tests.core.store.stage import rows
from tests.kit.jobs import claim, register
from tests.turns.test_turns import gated, hand_over, states


def told(engine: PostgresEngine) -> bool:
    """Whether somebody is to look at a gate."""
    return engine.run(looks.turns_wanted()).at_once


def ended(engine: PostgresEngine) -> store.MovedAndMade:
    """Who has the turn runs, and its end is written."""
    holder = register(engine)
    (job,) = claim(engine, holder, limit=1)
    return engine.run(store.succeed_alone([Success(job.id, 1, "1")], holder=holder))


def test_the_next_gets_the_turn_with_the_end_and_nobody_needs_to_look(pg: PostgresEngine) -> None:
    ids = gated(pg, 3)
    assert hand_over(pg) == ids[:1]

    done = ended(pg)

    assert [job.id for job in done.moved] == ids[:1]
    assert [(job.id, job.queue, job.waits) for job in done.made] == [(ids[1], "mail", False)]
    assert states(pg, ids[1:]) == ["queued", "waiting"]
    assert not told(pg)
    assert hand_over(pg) == []


def test_an_end_in_the_transaction_of_somebody_locks_nobody_who_waits(pg: PostgresEngine) -> None:
    ids, holder = gated(pg, 2), register(pg)
    hand_over(pg)
    claim(pg, holder, limit=1)

    pg.run(store.succeed([Success(ids[0], 1, "1")], holder=holder))

    assert states(pg, ids[1:]) == ["waiting"]
    assert hand_over(pg) == ids[1:]


@pytest.mark.parametrize(
    ("first", "behind"),
    [
        ({"exclusive_at_once": 2}, [{"exclusive_at_once": 1}]),
        ({}, [{"exclusive_at_once": 2}]),
        ({}, [{"limits": ("free",)}]),
        ({}, [{"priority": 1}, {"priority": 2}]),
        ({}, [{"queue": "other"}, {"queue": "mail"}]),
        ({}, [{"queue": "paused"}]),
        ({}, [{"delay_s": 60.0}]),
        ({}, []),
    ],
)
def test_what_is_less_plain_is_left_to_a_look(
    pg: PostgresEngine, first: dict[str, Any], behind: list[dict[str, Any]]
) -> None:
    pg.run(limits.define(Limit("free", at_once=9), actor=None, reason=None))
    gated(pg, 1, **first)
    hand_over(pg)
    waiting = [gated(pg, 1, **each)[0] for each in behind]
    hand_over(pg)
    pg.run(queue_rows.pause_queue("paused", actor=None, reason=None))

    assert ended(pg).made == []

    assert states(pg, waiting) == ["waiting"] * len(waiting)
    assert told(pg)


def test_a_turn_that_is_kept_is_not_passed_on(pg: PostgresEngine) -> None:
    gated(pg, 1)
    hand_over(pg)
    (waiting,) = gated(pg, 1)
    rows(
        pg,
        "UPDATE fencerow.gates SET kept_for = gen_random_uuid(), kept_until = now() + INTERVAL '1 minute' RETURNING 1",
    )

    assert ended(pg).made == []

    assert states(pg, [waiting]) == ["waiting"]
    assert told(pg)


def test_a_queue_that_is_passed_over_gets_no_turn_with_an_end(pg: PostgresEngine) -> None:
    gated(pg, 1)
    hand_over(pg)
    gated(pg, 1, queue="nobody")
    rows(
        pg,
        "INSERT INTO fencerow.passed_queues VALUES ('key:k', 'nobody', now(), now() + INTERVAL '1 minute') RETURNING 1",
    )

    assert ended(pg).made == []


def test_a_look_takes_what_arrived_at_gates_where_nobody_waits_and_locks_none(pg: PostgresEngine) -> None:
    gated(pg, 1)
    hand_over(pg)
    ended(pg)
    assert told(pg)

    handed = pg.run(handing.hand_over())

    assert not handed.queued and handed.last
    assert not told(pg)


def test_one_that_has_expired_gets_no_turn_with_an_end(pg: PostgresEngine) -> None:
    gated(pg, 1)
    hand_over(pg)
    (waiting,) = gated(pg, 1)
    rows(
        pg,
        "UPDATE {jobs} SET expires_at = now() - INTERVAL '1 s' WHERE state = 'waiting' RETURNING 1",
    )

    assert ended(pg).made == []

    assert states(pg, [waiting]) == ["waiting"]


def test_a_look_opens_a_gate_where_a_turn_is_kept_though_nobody_waits_there(pg: PostgresEngine) -> None:
    """For whom it is kept may wait at another of its gates."""
    gated(pg, 1)
    hand_over(pg)
    ended(pg)
    kept = "kept_for = gen_random_uuid(), kept_until = now() + INTERVAL '1 minute'"
    rows(pg, f"UPDATE fencerow.gates SET {kept}, next_at = now() + INTERVAL '1 day' RETURNING 1")

    pg.run(handing.hand_over())

    assert rows(pg, "SELECT next_at FROM fencerow.gates") == [{"next_at": None}], "it was looked at"
