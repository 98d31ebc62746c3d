"""Turns that nobody uses go to jobs of other queues: of a paused queue, and where nobody claims."""

from __future__ import annotations

import pytest

from fencerow import Client
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.operators import looking
from fencerow.operators.queues import pause_queue, resume_queue
from fencerow.testing.clock import DatabaseClock
from fencerow.turns import handing, looks
from tests.kit.jobs import AnyEngine, claim, read, register
from tests.turns.test_turns import gated, hand_over, retried, states

CLAIM_S = 60.0
GATES = ["key:k"]


def back(engine: AnyEngine, unclaimed_s: float | None = CLAIM_S) -> list[str]:
    return engine.run(handing.take_turns_back(GATES, unclaimed_s=unclaimed_s, actor="sweep"))


def swept(engine: AnyEngine) -> list[str]:
    """What the sweep of a worker gives."""
    back(engine)
    return [job.id for job in engine.run(handing.hand_over(GATES)).queued]


def test_pausing_a_queue_lets_jobs_of_other_queues_go(engine: AnyEngine) -> None:
    first, second = gated(engine, 2, queue="else")
    (other,) = gated(engine)
    assert hand_over(engine) == [first]

    Client(engine, actor="ada").pause_queue("else")

    assert states(engine, [first, second, other]) == ["waiting"] * 3
    assert hand_over(engine) == [other]
    (said,) = [each for each in engine.run(looking.events(first)) if each.kind == "yielded"]
    assert (said.actor, said.detail) == ("ada", {"why": "paused", "gate": "key:k"})
    engine.run(resume_queue("else"))
    claim(engine, holder := register(engine))
    engine.run(store.succeed([store.Success(other, 1, "1")], holder=holder))
    assert hand_over(engine) == [first], "it has kept its place"
    assert (read(engine, first).attempt, read(engine, first).snoozes, read(engine, first).failures) == (
        0,
        0,
        0,
    )


def test_a_turn_that_nobody_claims_goes_to_a_job_of_another_queue(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    first, second = gated(engine, 2, queue="unserved")
    (other,) = gated(engine)
    assert hand_over(engine) == [first]
    clock.advance(CLAIM_S - 5)
    assert swept(engine) == []
    clock.advance(10)

    assert swept(engine) == [other], "the second of the queue is passed over, too"

    (said,) = [each for each in engine.run(looking.events(first)) if each.kind == "yielded"]
    assert said.detail == {"why": "unclaimed", "gate": "key:k"}
    claim(engine, holder := register(engine))
    engine.run(store.succeed([store.Success(other, 1, "1")], holder=holder))
    assert swept(engine) == [], "it is passed over for as long"
    clock.advance(CLAIM_S + 1)
    assert swept(engine) == [first], "then its place is the first again"
    assert states(engine, [second]) == ["waiting"]


@pytest.mark.parametrize("who", ["nobody", "of the same queue", "of a paused queue", "for later"])
def test_a_turn_stays_where_nobody_else_could_have_it(
    engine: AnyEngine, clock: DatabaseClock, who: str
) -> None:
    """Where a queue is slow, the order of its jobs stays what it is."""
    (first,) = gated(engine, 1, queue="slow")
    assert hand_over(engine) == [first]
    match who:
        case "of the same queue":
            gated(engine, 1, queue="slow")
        case "of a paused queue":
            gated(engine, 1, queue="paused")
            engine.run(pause_queue("paused", actor="ada"))
        case "for later":
            gated(engine, 1, delay_s=9000.0)
        case _:
            pass
    clock.advance(CLAIM_S + 1)
    assert back(engine) == []
    assert states(engine, [first]) == ["queued"]


def test_a_turn_that_was_used_stays_unless_its_queue_is_paused(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    """A released job has kept its turn, and nobody knows for how long no worker has been there to take it."""
    (first,) = gated(engine)
    gated(engine, 1, queue="else")
    hand_over(engine)
    claim(engine, holder := register(engine))
    engine.run(store.requeue([store.Requeue(id=first, attempt=1, kind="released")], holder=holder))
    clock.advance(CLAIM_S + 1)
    assert back(engine) == []
    engine.run(pause_queue("mail", actor="ada"))
    assert back(engine, None) == [first]


def test_who_ends_when_nothing_is_left_waits_for_the_turn_of_a_paused_queue(engine: AnyEngine) -> None:
    gated(engine, 1, queue="else")
    hand_over(engine)
    engine.run(pause_queue("else", actor="ada"))
    assert not engine.run(looks.any_soon()), "nobody else wants it"

    (other,) = gated(engine)
    hand_over(engine)  # who heard of it, and found no room
    assert engine.run(looks.any_soon())

    assert swept(engine) == [other]
    assert not engine.run(looks.any_soon())


def test_a_strict_job_keeps_the_turn_that_it_has_started(engine: AnyEngine, clock: DatabaseClock) -> None:
    (first,) = gated(engine, 1, strict=True)
    gated(engine, 1, queue="else")
    hand_over(engine)
    claim(engine, holder := register(engine))
    engine.run(store.requeue([retried(first)], holder=holder))
    clock.advance(CLAIM_S + 6)
    engine.run(pause_queue("mail", actor="ada"))
    assert back(engine) == []
    assert states(engine, [first]) == ["queued"]


def test_a_strict_job_that_has_not_started_gives_its_turn_up(engine: AnyEngine) -> None:
    (first,) = gated(engine, 1, strict=True)
    gated(engine, 1, queue="else")
    hand_over(engine)
    engine.run(pause_queue("mail", actor="ada"))
    assert back(engine, None) == [first]


def test_a_running_job_is_left_alone(engine: AnyEngine, clock: DatabaseClock) -> None:
    (first,) = gated(engine)
    gated(engine, 1, queue="else")
    hand_over(engine)
    claim(engine, register(engine))
    clock.advance(CLAIM_S + 1)
    engine.run(pause_queue("mail", actor="ada"))
    assert back(engine) == []
    assert read(engine, first).state is State.RUNNING


def test_a_clock_that_went_back_passes_over_no_queue(engine: AnyEngine, clock: DatabaseClock) -> None:
    """A job that had its turn and comes back is none that nobody claimed."""
    (first,) = gated(engine)
    hand_over(engine)
    claim(engine, holder := register(engine))
    clock.advance(-7200)
    engine.run(store.requeue([retried(first, -1.0)], holder=holder))
    assert hand_over(engine) == [first]


def test_a_turn_that_was_given_before_the_clock_went_back_goes_on(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    """Its time lies an hour ahead, and who waits behind it must not wait for that."""
    clock.advance(3600)
    (first,) = gated(engine, 1, queue="unserved")
    assert hand_over(engine) == [first]
    clock.advance(-3600)
    (other,) = gated(engine)
    assert swept(engine) == [other]


def test_a_queue_is_not_passed_over_for_the_hour_that_a_clock_went_back(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    (first,) = gated(engine, 1, queue="else")
    assert hand_over(engine) == [first]
    (other,) = gated(engine)
    clock.advance(3600)
    assert swept(engine) == [other]
    claim(engine, holder := register(engine))
    clock.advance(-3600)
    engine.run(store.succeed([store.Success(other, 1, "1")], holder=holder))
    assert swept(engine) == [first]
