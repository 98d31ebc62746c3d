"""Races for the room under a limit of a queue: a limit of one is never two."""

from __future__ import annotations

from typing import Any

from fencerow.core.store import store
from fencerow.limits import Limit, Rate
from fencerow.limits.limits import bound_claim, define, redefine, remove
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
    die,
    new_job,
    reclaim,
    register,
    state,
    succeed,
    with_jobs,
)

ONE = Limit("queue:mail", at_once=1)


def limited(*limits: Limit, workers: tuple[str, ...] = (FIRST, SECOND)) -> Any:
    """A setup: three jobs, and the limits."""

    def setup() -> Script:
        yield from with_jobs(new_job(JOB), new_job(OTHER_JOB), new_job(THIRD_JOB), workers=workers)()
        for limit in limits:
            yield define(limit, actor=None, reason=None)

    return setup


def bounded(holder: str, wanted: int = 2) -> Any:
    """A claim under the limits of the queue."""

    def claim(limit: int) -> Any:
        marks = [store.Mark(0)]
        return store.claim(
            "mail", marks, holder=holder, names=["send"], limit=limit, margin_s=10.0, bounded=True
        )

    return bound_claim("mail", wanted, claim)


def taking(name: str, holder: str) -> Actor:
    def script(_: Any) -> Script:
        return [job.id for job in (yield bounded(holder)).jobs]

    return Actor(name, script)


def ending_and_taking(name: str, holder: str) -> Actor:
    """Ends what it got, and asks for more."""

    def script(_: Any) -> Script:
        got = [job.id for job in (yield bounded(holder)).jobs]
        for job_id in got:
            yield succeed(holder, job_id=job_id)
        more = [job.id for job in (yield bounded(holder)).jobs]
        return got, more

    return Actor(name, script)


def held(story: Story) -> int:
    return sum(len(story.results[name]) for name in ("first", "second"))


def one_runs(story: Story) -> None:
    assert held(story) == 1, "the limit of one was passed, or nobody used it"


both = Scenario(
    "limited claim × limited claim",
    limited(ONE),
    [taking("first", FIRST), taking("second", SECOND)],
    one_runs,
)
UNLOCKED = Cut("lock_queue_limits", ("FOR UPDATE", ""))


@named(66)
def test_two_claims_share_what_a_limit_lets_through(race: Race) -> None:
    race(both)


@named(66)
def test_two_claims_pass_a_limit_whose_row_they_do_not_lock(race: Race) -> None:
    if race.mode != "sqlite":
        race.turns_red(both, UNLOCKED)


@named(66)
def test_a_claim_passes_a_limit_without_a_count(race: Race) -> None:
    never = ("WHERE job.state = 'running'", "WHERE false"), ("WHERE job.state = 'running'", "WHERE 0")
    race.turns_red(both, Cut("count_running", *never))


def two_start(story: Story) -> None:
    assert held(story) == 2, "a burst of two is two"


paced = Scenario(
    "limited claim × limited claim under a rate",
    limited(Limit("queue:mail", rate=Rate(1, per_s=3_600, burst=2))),
    [taking("first", FIRST), taking("second", SECOND)],
    two_start,
)


@named(66)
def test_two_claims_share_the_burst_of_a_rate(race: Race) -> None:
    race(paced)


@named(66)
def test_two_claims_pass_a_rate_that_is_not_locked_or_not_written(race: Race) -> None:
    if race.mode != "sqlite":
        race.turns_red(paced, UNLOCKED)
    race.turns_red(
        paced,
        Cut(
            "write_limit_state",
            ("WHERE state.name = :name", "WHERE false"),
            ("WHERE name = :name", "WHERE 0"),
        ),
    )


def nobody_waits_for_ever(story: Story) -> None:
    (got, more), other = story.results["first"], story.results["second"]

    assert len([*got, *other]) >= 1 and len([*more, *other]) == 1, "an end makes room for one"


ends = Scenario(
    "limited claim × limited claim × their ends",
    limited(ONE),
    [ending_and_taking("first", FIRST), taking("second", SECOND)],
    nobody_waits_for_ever,
)


@named(66)
def test_what_ends_makes_room_for_one(race: Race) -> None:
    race(ends)


def dying() -> Script:
    """A setup: the first worker runs one of three, and is silent for longer than its lease."""
    yield from limited(ONE)()
    yield bounded(FIRST)
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)
    yield register(THIRD)


def burying(_: Any) -> Script:
    dead = yield die(THIRD)
    yield reclaim(*dead)
    return dead


def a_dead_one_has_its_turn_until_it_is_taken_back(story: Story) -> None:
    running = [each for each in (JOB, OTHER_JOB, THIRD_JOB) if state(story, each) == "running"]

    assert story.results["reaper"] == [FIRST]
    assert len(running) == len(story.results["second"]) <= 1


death = Scenario(
    "limited claim × die × reclaim",
    dying,
    [taking("second", SECOND), Actor("reaper", burying)],
    a_dead_one_has_its_turn_until_it_is_taken_back,
)


@named(66)
def test_what_a_dead_worker_ran_counts_until_it_is_taken_back(race: Race) -> None:
    race(death)


def lowering(_: Any) -> Script:
    yield redefine(Limit("queue:mail", at_once=1), revision=1, actor=None, reason=None)
    return [job.id for job in (yield bounded(FIRST)).jobs]


def no_start_after_it_was_lowered(story: Story) -> None:
    before, after = story.results["second"], story.results["first"]

    assert len(before) in (0, 1, 2)
    assert not (before and after), "a start under the new limit looked past what ran"


lowered = Scenario(
    "limited claim × a lower limit",
    limited(Limit("queue:mail", at_once=2)),
    [Actor("first", lowering), taking("second", SECOND)],
    no_start_after_it_was_lowered,
)


@named(66)
def test_a_lower_limit_counts_what_runs(race: Race) -> None:
    race(lowered)


@named(66)
@in_modes("held")
def test_a_start_looks_past_a_lower_limit_whose_row_it_does_not_lock(race: Race) -> None:
    race.turns_red(lowered, Cut("lock_queue_limits", ("FOR UPDATE", "FOR UPDATE OF state")))


def removing(_: Any) -> Script:
    return (yield remove("queue:mail", revision=1))


def nothing_is_lost(story: Story) -> None:
    assert story.results["remover"] is True
    assert len(story.results["first"]) in (1, 2)
    assert story.run(store.lanes("mail"))[0] == [] or not story.run(store.lanes("mail"))[0][0].limited


removal = Scenario(
    "limited claim × remove",
    limited(ONE),
    [taking("first", FIRST), Actor("remover", removing)],
    nothing_is_lost,
)


@named(66)
def test_a_removed_limit_binds_nobody(race: Race) -> None:
    race(removal)
