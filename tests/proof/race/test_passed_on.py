"""Races of an end that passes its turn on to the next of its key, without the lock of the gate.

That no key has more turns than it allows is an invariant: it is looked at after each order of every race.
"""

from __future__ import annotations

import pytest

from fencerow.core.store import store
from fencerow.core.store.attempts import FirstEnds
from fencerow.db.run import Operation
from fencerow.limits import Limit
from fencerow.limits.limits import define
from fencerow.turns import looks
from fencerow_proof.arena.actor import Script, doing
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import (
    FIRST,
    JOB,
    OTHER_JOB,
    THIRD_JOB,
    acting,
    cancel,
    claim,
    new_job,
    of_a_key,
    register,
    state,
)
from tests.proof.race.test_turns import HAND_OVER, LOOK, THREE, goes_to, one_has_it, with_names


def ends(job_id: str = JOB) -> Operation[FirstEnds]:
    return store.succeed_first([store.Success(job_id, 1, '"done"')], holder=FIRST)


def comes() -> Script:
    yield store.submit_gated([of_a_key(OTHER_JOB)])


hands = Scenario(
    "succeed that passes on × hand_over × hand_over",
    one_has_it(*THREE),
    [doing("worker", ends()), doing("first", LOOK), doing("second", HAND_OVER)],
    goes_to(OTHER_JOB),
)
cancelled = Scenario(
    "succeed that passes on × cancel of the first that waits",
    one_has_it(*THREE),
    [doing("worker", ends()), doing("client", cancel(OTHER_JOB)), doing("first", HAND_OVER)],
    goes_to(OTHER_JOB, THIRD_JOB),
)
nobody_waits = Scenario(
    "succeed that passes on × submit × hand_over",
    one_has_it(of_a_key(JOB)),
    [doing("worker", ends()), acting("client", comes), doing("first", HAND_OVER)],
    goes_to(OTHER_JOB),
)


def two_wait_for_one_that_lets_another_run() -> Script:
    """A setup: the first of those that wait may run beside it, the second beside nobody."""
    yield from one_has_it(of_a_key(JOB, exclusive_at_once=2))()
    yield store.submit_gated([of_a_key(OTHER_JOB, exclusive_at_once=2), of_a_key(THIRD_JOB)])


def holds(_story: object) -> None:
    """The invariant says all."""


several = Scenario(
    "succeed of one that lets another run beside it × hand_over",
    two_wait_for_one_that_lets_another_run,
    [doing("worker", ends()), doing("first", LOOK)],
    holds,
)


@named(62)
@pytest.mark.parametrize("raced", [hands, cancelled, nobody_waits, several], ids=with_names)
def test_a_turn_that_is_passed_on_is_nobody_elses(race: Race, raced: Scenario) -> None:
    race(raced)


ALONE = Cut("succeed_first", ("AND COALESCE(ended.exclusive_at_once, 1) = 1", ""))


@in_modes("plain", "held")
@named(62)
def test_a_turn_is_passed_on_to_one_that_runs_beside_another(race: Race) -> None:
    race.turns_red(several, ALONE)


NO_ARRIVAL = Cut(
    "succeed_first",
    (
        "SELECT 'key:' || ended.exclusive FROM ended WHERE ended.exclusive IS NOT NULL\n",
        "SELECT 'key:' || ended.exclusive FROM ended WHERE false\n",
    ),
)


@in_modes("held")
@named(62)
def test_who_comes_while_nobody_waits_is_forgotten_where_an_end_leaves_no_arrival(race: Race) -> None:
    race.turns_red(nobody_waits, NO_ARRIVAL)


# A look passes over gates where nobody waits: whoever is sent to one says so.


def it_waits_for_a_limit_and_its_key_is_taken() -> Script:
    """A setup: the third waits at the gate of its limit, where there is room now; the first has the turn of its key."""
    yield register(FIRST)
    yield define(Limit("a", at_once=1), actor=None, reason=None)
    yield store.submit_gated([new_job(OTHER_JOB, limits=("a",))])
    yield HAND_OVER
    yield store.submit_gated([of_a_key(THIRD_JOB, limits=("a",))])
    yield HAND_OVER
    yield store.submit_gated([of_a_key(JOB)])
    yield HAND_OVER
    yield claim(FIRST, 2)
    yield ends(OTHER_JOB)


def it_goes(story: Story) -> None:
    while story.run(looks.turns_wanted()).at_once:
        story.run(HAND_OVER)
    assert state(story, THIRD_JOB) == "queued", "its key and its limit are free, and nobody looks"


sent_on = Scenario(
    "hand_over that sends on to a key × succeed × hand_over",
    it_waits_for_a_limit_and_its_key_is_taken,
    [doing("first", HAND_OVER), doing("worker", ends()), doing("second", HAND_OVER)],
    it_goes,
)


@named(62)
def test_who_is_sent_on_to_a_key_that_becomes_free_is_not_forgotten(race: Race) -> None:
    race(sent_on)


@in_modes("plain", "held")
@named(62)
def test_who_is_sent_on_is_forgotten_where_he_does_not_arrive(race: Race) -> None:
    race.turns_red(sent_on, Cut("send_on", ("WHERE starts_with(sent.gate, 'key:')", "WHERE false")))
