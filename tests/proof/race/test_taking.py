"""Races for a hand-over that claims what it gives: a limit of one is never two, and no job has two holders."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fencerow.limits import Limit
from fencerow.turns.handing import BESIDE, taking_over
from fencerow_proof.arena.actor import Actor, Script
from fencerow_proof.arena.race import Scenario, Story
from tests.kit.taking import Slots
from tests.proof.race.conftest import Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import FIRST, JOB, OTHER_JOB, SECOND, THIRD_JOB, cancel, claim, state
from tests.proof.race.test_named_limits import (
    UNCOUNTED,
    UNLOCKED,
    hander,
    limited,
    lowering,
    nobody_comes_after_it_was_lowered,
    settle,
    turned,
    waiting,
)

ALL = (JOB, OTHER_JOB, THIRD_JOB)


def taker(name: str, holder: str, slots: int = 3, beside: int = BESIDE) -> Actor:
    def script(_: Any) -> Script:
        handed = yield taking_over(Slots(holder, slots), ["limit:a"], beside=beside)
        return [job.id for job in handed.claimed]

    return Actor(name, script)


def come(*, at_once: int = 1) -> Any:
    """A setup: three wait under the limit."""
    return waiting(*(limited(each, "a") for each in ALL), limits=(Limit("a", at_once=at_once),))


def one_runs(story: Story) -> None:
    claimed = [*story.results["first"], *story.results["second"]]
    assert len(claimed) == len(turned(story)) == 1, "the limit of one was passed, or nobody has the turn"
    assert state(story, claimed[0]) == "running"


two_take = Scenario(
    "hand_over that claims × hand_over that claims",
    come(),
    [taker("first", FIRST), taker("second", SECOND)],
    one_runs,
)


# Where nobody is expected to need another gate none is looked for, and turns are counted before limits are locked.
two_early = replace(
    two_take,
    name="hand_over that claims and counts early × the same",
    actors=[taker("first", FIRST, beside=0), taker("second", SECOND, beside=0)],
)


@named(66)
@pytest.mark.parametrize("played", [two_take, two_early], ids=["plain", "early"])
def test_two_that_claim_what_they_give_pass_no_limit(race: Race, played: Scenario) -> None:
    race(played)


@named(66)
@in_modes("plain", "held")
@pytest.mark.parametrize("played", [two_take, two_early], ids=["plain", "early"])
def test_two_that_claim_pass_a_limit_whose_gate_is_not_locked(race: Race, played: Scenario) -> None:
    race.turns_red(played, UNLOCKED)


@named(66)
def test_two_that_claim_pass_a_limit_without_a_count(race: Race) -> None:
    race.turns_red(two_take, UNCOUNTED)


def one_of_each(story: Story) -> None:
    """What is not claimed at once is queued for everybody."""
    settle(story)
    assert len(turned(story)) == 2
    assert not {*story.results["taker"]} & {*story.results["claimer"]}, "two hold one job"


gives_and_takes = Scenario(
    "hand_over that claims × hand_over × claim",
    come(at_once=2),
    [
        taker("taker", FIRST, slots=1),
        hander("hander", "limit:a"),
        Actor("claimer", lambda _: (yield from _claimed())),
    ],
    one_of_each,
)


def _claimed() -> Script:
    return [job.id for job in (yield claim(SECOND))]


@named(66)
def test_who_gets_a_turn_and_a_slot_at_once_has_one_holder(race: Race) -> None:
    race(gives_and_takes, share=0.3)


def cancelling(_: Any) -> Script:
    yield cancel()


def it_ends_or_runs(story: Story) -> None:
    taken = story.results["taker"]
    assert state(story, JOB) == ("running" if JOB in taken else "cancelled")


cancelled = Scenario(
    "hand_over that claims × cancel",
    come(),
    [taker("taker", FIRST), Actor("canceller", cancelling)],
    it_ends_or_runs,
)


@named(66)
def test_one_that_is_cancelled_while_it_waits_is_not_claimed_with_its_turn(race: Race) -> None:
    race(cancelled)


lowered = Scenario(
    "hand_over that claims × a lower limit",
    come(at_once=3),
    [Actor("changer", lowering), taker("second", SECOND)],
    nobody_comes_after_it_was_lowered,
)


@named(66)
@pytest.mark.parametrize("beside", [BESIDE, 0])
def test_a_lower_limit_holds_for_those_who_claim_what_they_give(race: Race, beside: int) -> None:
    actors = [Actor("changer", lowering), taker("second", SECOND, beside=beside)]
    race(replace(lowered, name=f"{lowered.name}, {beside}", actors=actors), share=0.3)
