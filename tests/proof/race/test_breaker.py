"""Races for the breaker of a limit: never one trial more, no failure unheard, nobody started while it is open."""

from __future__ import annotations

from typing import Any

from fencerow.core.store import store
from fencerow.limits import Breaker, Limit
from fencerow.limits.limits import define
from fencerow.turns import handing
from fencerow_proof.arena.actor import Actor, Script, later
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import (
    FIRST,
    JOB,
    LEASE_S,
    OTHER_JOB,
    SECOND,
    THIRD,
    THIRD_JOB,
    claim,
    fail,
    new_job,
    register,
    state,
    succeed,
    uid,
)
from tests.proof.race.test_limits import UNLOCKED as QUEUE_UNLOCKED
from tests.proof.race.test_limits import bounded, burying, held, taking
from tests.proof.race.test_named_limits import UNLOCKED, hander, limited, settle, turned

BROKEN = uid(40)
STOP_S = 5.0
LIMIT = Limit("a", breaker=Breaker(1, 60, stop_s=STOP_S))
WAITING = (JOB, OTHER_JOB, THIRD_JOB)


def trying(limit: Limit = LIMIT) -> Script:
    """A failure has opened the breaker, and its time is over: the next one tries."""
    for holder in (FIRST, SECOND):
        yield register(holder)
    yield define(limit, actor=None, reason=None)
    yield store.submit_gated([limited(BROKEN, "a")])
    yield handing.hand_over()
    yield claim(FIRST)
    yield fail(FIRST, job_id=BROKEN)
    yield handing.hand_over()
    yield later(STOP_S)


def three_wait() -> Script:
    yield from trying()
    yield store.submit_gated([limited(each, "a") for each in WAITING])


def one_tries(story: Story) -> None:
    settle(story)
    assert len(turned(story)) == 1, "more than one tries, or nobody does"


trial = Scenario(
    "hand_over × hand_over when a breaker lets one try",
    three_wait,
    [hander("first", "limit:a"), hander("second", "limit:a")],
    one_tries,
)


@named(67)
@in_modes("plain", "sqlite")
def test_one_tries_whoever_hands_over(race: Race) -> None:
    race(trial, share=0.3)


@named(67)
@in_modes("plain")
def test_two_try_where_the_gate_is_not_locked(race: Race) -> None:
    race.turns_red(trial, UNLOCKED)


# The trial ends.


def one_runs() -> Script:
    yield from trying()
    yield store.submit_gated([limited(JOB, "a")])
    yield handing.hand_over()
    yield claim(FIRST)
    yield store.submit_gated([limited(each, "a") for each in (OTHER_JOB, THIRD_JOB)])


def ending(how: Any) -> Actor:
    def script(_: Any) -> Script:
        return [job.id for job in (yield how(FIRST))]

    return Actor("worker", script)


def nobody_goes(story: Story) -> None:
    assert story.results["worker"] == [JOB]
    settle(story)
    assert turned(story) == [], "the trial has failed, and somebody got its place"


failed = Scenario(
    "failure of the trial × hand_over × hand_over",
    one_runs,
    [ending(fail), hander("first", "limit:a"), hander("second", "limit:a")],
    nobody_goes,
)


@named(67)
def test_a_trial_that_fails_gives_its_place_to_nobody(race: Race) -> None:
    race(failed, share=0.1)


@named(67)
def test_a_trial_that_fails_is_followed_by_another_where_its_failure_is_not_told(race: Race) -> None:
    told = "AND COALESCE(json_extract(json_extract(o.value, '$.error'), '$.code'), '') NOT IN"
    race.turns_red(
        failed,
        Cut(
            "fail",
            ("WHERE moved.has_failed", "WHERE NOT moved.has_failed"),
            (told, told.replace("NOT IN", "IN")),
        ),
    )


def all_go(story: Story) -> None:
    assert story.results["worker"] == [JOB]
    settle(story)
    assert turned(story) == [OTHER_JOB, THIRD_JOB], "the trial has succeeded, and nobody heard of it"


succeeded = Scenario(
    "success of the trial × hand_over × hand_over",
    one_runs,
    [ending(succeed), hander("first", "limit:a"), hander("second", "limit:a")],
    all_go,
)
# Beside two looks hardly one order in a hundred shows that nobody is told.
beside_one = Scenario(
    "success of the trial × hand_over", one_runs, [ending(succeed), hander("first", "limit:a")], all_go
)


@named(67)
@in_modes("plain", "sqlite")
def test_a_trial_that_succeeds_lets_all_go(race: Race) -> None:
    race(succeeded, share=0.1)


@named(67)
@in_modes("plain")
def test_nobody_hears_of_a_trial_that_succeeds_and_tells_no_gate(race: Race) -> None:
    race.turns_red(
        beside_one, Cut("succeed", ("FROM ended WHERE ended.limits IS NOT NULL", "FROM ended WHERE false"))
    )


# The trial's worker dies.


def one_is_silent() -> Script:
    yield from one_runs()
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)
    yield register(THIRD)


def the_trial_goes_on(story: Story) -> None:
    assert story.results["reaper"] == [FIRST]
    settle(story)
    assert turned(story) == [JOB], "somebody tries beside it, or it has lost its place"
    assert state(story, JOB) == "queued"


death = Scenario(
    "die × reclaim of the trial × hand_over",
    one_is_silent,
    [Actor("reaper", burying), hander("first", "limit:a")],
    the_trial_goes_on,
)


@named(67)
@in_modes("plain", "sqlite")
def test_a_trial_whose_worker_died_keeps_its_place(race: Race) -> None:
    race(death)


# It opens while somebody has a turn that is not used yet.


def one_runs_beside_one_that_may() -> Script:
    yield register(FIRST)
    yield register(SECOND)
    yield define(LIMIT, actor=None, reason=None)
    yield store.submit_gated([limited(JOB, "a")])
    yield handing.hand_over()
    yield claim(FIRST)
    yield store.submit_gated([limited(OTHER_JOB, "a")])
    yield handing.hand_over()


def failing(_: Any) -> Script:
    yield fail(FIRST)
    yield handing.hand_over()
    # Now it is open, and whoever has not started by now is not to.
    seen = yield store.read_fences([OTHER_JOB])
    return str(seen[OTHER_JOB].state)


def claiming(_: Any) -> Script:
    return [job.id for job in (yield claim(SECOND))]


def nobody_starts_after_it_opened(story: Story) -> None:
    settle(story)
    after = story.results["worker"]
    assert after != "queued", "it is open, and somebody who has not started still may"
    assert (state(story, OTHER_JOB) == "running") == (story.results["claimer"] == [OTHER_JOB])
    assert after == state(story, OTHER_JOB)


opening = Scenario(
    "failure that opens a breaker × claim",
    one_runs_beside_one_that_may,
    [Actor("worker", failing), Actor("claimer", claiming)],
    nobody_starts_after_it_opened,
)


@named(67)
@in_modes("plain", "sqlite")
def test_nobody_starts_after_it_opened(race: Race) -> None:
    race(opening)


@named(67)
@in_modes("plain", "sqlite")
def test_somebody_starts_after_it_opened_where_turns_are_not_taken_back(race: Race) -> None:
    race.turns_red(
        opening,
        Cut(
            "find_unused_turns",
            ("turned.state IS NOT DISTINCT FROM 'queued'", "false"),
            ("turned.state = 'queued'", "0"),
        ),
    )


# That of a queue.


def a_queue_tries() -> Script:
    for holder in (FIRST, SECOND):
        yield register(holder)
    yield define(Limit("queue:mail", breaker=Breaker(1, 60, stop_s=STOP_S)), actor=None, reason=None)
    yield store.submit([new_job(BROKEN)])
    yield bounded(FIRST, 1)
    yield fail(FIRST, job_id=BROKEN)
    yield bounded(FIRST, 1)
    yield later(STOP_S)
    yield store.submit([new_job(each) for each in WAITING])


def one_started(story: Story) -> None:
    assert held(story) == 1, "more than one tries, or nobody does"


of_queue = Scenario(
    "limited claim × limited claim when a breaker lets one try",
    a_queue_tries,
    [taking("first", FIRST), taking("second", SECOND)],
    one_started,
)


@named(67)
@in_modes("plain", "sqlite")
def test_one_of_a_queue_tries_whoever_claims(race: Race) -> None:
    race(of_queue)


@named(67)
@in_modes("plain")
def test_two_of_a_queue_try_where_its_limit_is_not_locked(race: Race) -> None:
    race.turns_red(of_queue, QUEUE_UNLOCKED)
