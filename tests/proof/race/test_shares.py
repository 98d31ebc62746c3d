"""Races for the jobs of shares: a claim in turn has the guards of a claim, whoever else wants the same job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fencerow.core.store import store
from fencerow_proof.arena.actor import Actor, Script
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Race
from tests.proof.race.named import named
from tests.proof.race.people import (
    FIRST,
    JOB,
    OTHER_JOB,
    SECOND,
    THIRD_JOB,
    cancel,
    new_job,
    state,
    with_jobs,
)
from tests.proof.race.test_claim import CLAIM_UNGUARDED

NOBODYS = OTHER_JOB

two_kinds = with_jobs(new_job(JOB, share="a"), new_job(NOBODYS), workers=(FIRST, SECOND))
three = with_jobs(
    new_job(JOB, share="a"), new_job(NOBODYS), new_job(THIRD_JOB, share="a"), workers=(FIRST, SECOND)
)

IN_TURN = [store.Mark(0, lane="share:a", count=1), store.Mark(0, count=1)]


def claiming(name: str, holder: str, lanes: Sequence[store.Mark]) -> Actor:
    """Claims from these lanes, and works it off."""

    def script(_: Any) -> Script:
        claimed = yield store.claim("mail", lanes, holder=holder, names=["send"], limit=2, margin_s=10.0)
        ends = [store.Success(job.id, job.attempt, '"done"') for job in claimed]
        moved = (yield store.succeed(ends, holder=holder)) if ends else []
        return [job.id for job in claimed], [each.id for each in moved]

    return Actor(name, script)


def in_turn(name: str, holder: str) -> Actor:
    """Claims what its ring shows, one of each."""
    return claiming(name, holder, IN_TURN)


def the_other_way(name: str, holder: str) -> Actor:
    """A worker whose turn stands elsewhere, and that takes all it can."""
    return claiming(name, holder, [store.Mark(0), store.Mark(0, lane="share:a")])


def each_has_one_claimer(story: Story) -> None:
    (first_got, first_moved), (second_got, second_moved) = story.results["first"], story.results["second"]
    assert sorted([*first_got, *second_got]) == sorted([JOB, NOBODYS])
    assert sorted([*first_moved, *second_moved]) == sorted([JOB, NOBODYS])
    assert {state(story, each) for each in (JOB, NOBODYS)} == {"succeeded"}


both = Scenario(
    "claim in turn × claim in turn",
    two_kinds,
    [in_turn("first", FIRST), in_turn("second", SECOND)],
    each_has_one_claimer,
)
against_plain = Scenario(
    "claim in turn × claim in another order",
    two_kinds,
    [in_turn("first", FIRST), the_other_way("second", SECOND)],
    each_has_one_claimer,
)


@named(70)
def test_two_claims_in_turn_never_take_one_job(race: Race) -> None:
    race(both)


@named(70)
def test_two_claims_in_turn_take_one_job_when_they_are_unguarded(race: Race) -> None:
    race.turns_red(both, *CLAIM_UNGUARDED)


@named(70)
def test_a_claim_in_another_order_never_takes_what_was_claimed_in_turn(race: Race) -> None:
    race(against_plain)


def cancelling(_: Any) -> Script:
    yield cancel(JOB)


def nobody_runs_what_was_cancelled(story: Story) -> None:
    claimed, _ = story.results["first"]
    assert NOBODYS in claimed
    assert (state(story, JOB) == "cancelled") != (JOB in claimed), "the claim or the cancel had it"
    assert (JOB in claimed) or (THIRD_JOB in claimed) or state(story, THIRD_JOB) == "queued"


against_cancel = Scenario(
    "claim in turn × cancel",
    three,
    [in_turn("first", FIRST), Actor("person", cancelling)],
    nobody_runs_what_was_cancelled,
)


@named(70)
def test_a_claim_in_turn_and_a_cancel_have_one_winner(race: Race) -> None:
    race(against_cancel)
