"""Races for the turns under limits that jobs name: a limit of one is never two, and nobody waits for nothing."""

from __future__ import annotations

from typing import Any

from fencerow.core.model.job import NewJob
from fencerow.core.store import store
from fencerow.limits import Limit, Rate
from fencerow.limits.limits import define, redefine, remove
from fencerow.turns import handing, looks
from fencerow.turns.handing import AGED_S
from fencerow_proof.arena.actor import Actor, Script, later
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import (
    FIRST,
    JOB,
    OTHER_JOB,
    SECOND,
    THIRD_JOB,
    cancel,
    claim,
    new_job,
    nothing,
    register,
    state,
    succeed,
)

A, B = Limit("a", at_once=1), Limit("b", at_once=1)
UNLOCKED = Cut("lock_gates", ("DO UPDATE\nSET name = EXCLUDED.name\nWHERE false", "DO NOTHING"))
UNCOUNTED = Cut(
    "count_turns",
    ("holder.state IN ('queued', 'running')", "false"),
    ("holder.state IN ('queued', 'running')", "0"),
)


def limited(job_id: str, *names: str) -> NewJob:
    return new_job(job_id, limits=names)


def waiting(*jobs: NewJob, limits: tuple[Limit, ...] = (A, B)) -> Any:
    """A setup: jobs that wait, and no arrival, so that each looks where it is told to."""

    def setup() -> Script:
        for holder in (FIRST, SECOND):
            yield register(holder)
        for limit in limits:
            yield define(limit, actor=None, reason=None)
        # Known before: who makes the row of a gate keeps others waiting, whatever they lock.
        yield handing.hand_over(["limit:a", "limit:b"])
        yield store.submit_gated(jobs)

    return setup


def hander(name: str, *gates: str) -> Actor:
    def script(_: Any) -> Script:
        return [job.id for job in (yield handing.hand_over(gates)).queued]

    return Actor(name, script)


def turned(story: Story) -> list[str]:
    return [each for each in (JOB, OTHER_JOB, THIRD_JOB) if state(story, each) in ("queued", "running")]


def settle(story: Story) -> None:
    """What the workers do after that: look where arrivals tell them to, and nowhere else."""
    while story.run(looks.turns_wanted())[0]:
        story.run(handing.hand_over())


def one_goes(story: Story) -> None:
    settle(story)
    assert len(turned(story)) == 1, "the limit of one was passed, or nobody has the turn"


crossed = Scenario(
    "hand_over × hand_over of two limits in two orders",
    waiting(limited(JOB, "a", "b"), limited(OTHER_JOB, "b", "a")),
    [hander("first", "limit:a"), hander("second", "limit:b")],
    one_goes,
)


@named(66)
def test_two_that_need_the_same_limits_in_two_orders_never_run_beside_each_other(race: Race) -> None:
    race(crossed)


@named(66)
@in_modes("plain", "held")
def test_two_pass_a_limit_whose_gate_is_not_locked(race: Race) -> None:
    race.turns_red(crossed, UNLOCKED)


@named(66)
def test_two_pass_a_limit_without_a_count(race: Race) -> None:
    race.turns_red(crossed, UNCOUNTED)


# One comes to the gate of its key, and needs the limit too: the limit is locked behind the key.

both_kinds = Scenario(
    "hand_over of a key whose job needs a limit × hand_over of the limit",
    waiting(new_job(JOB, exclusive="k", limits=("a",)), limited(OTHER_JOB, "a"), limits=(A,)),
    [hander("first", "key:k"), hander("second", "limit:a")],
    one_goes,
)


@named(66)
def test_who_needs_a_key_and_a_limit_gets_both_turns_or_none(race: Race) -> None:
    race(both_kinds)


@named(66)
@in_modes("plain", "held")
def test_a_limit_is_passed_where_the_gate_behind_the_key_is_not_locked(race: Race) -> None:
    race.turns_red(both_kinds, UNLOCKED)


def ending(_: Any) -> Script:
    return [job.id for job in (yield succeed(FIRST))]


# Turns are kept for one that needs several.


def one_is_kept_for() -> Script:
    """The third is old and needs both; `a` is free and kept for it, `b` has a job that runs."""
    yield from waiting(limited(JOB, "b"))()
    yield handing.hand_over()
    yield claim(FIRST)
    yield store.submit_gated([limited(THIRD_JOB, "a", "b")])
    yield later(AGED_S + 1)
    yield handing.hand_over(["limit:a"])
    yield store.submit_gated([limited(OTHER_JOB, "a")])


def it_goes(story: Story) -> None:
    assert story.results["worker"] == [JOB]
    settle(story)
    assert turned(story) == [THIRD_JOB], "who needs one turn went before who needs two for long"


kept = Scenario(
    "hand_over where a turn is kept × end under the other limit × hand_over",
    one_is_kept_for,
    [hander("first", "limit:a"), Actor("worker", ending), hander("second", "limit:b")],
    it_goes,
)


@named(66)
def test_a_turn_that_is_kept_is_used_by_whom_it_is_kept_for(race: Race) -> None:
    race(kept, share=0.3)


@named(66)
def test_a_turn_is_not_kept_where_nobody_looks_for_whom(race: Race) -> None:
    race.turns_red(
        kept,
        Cut(
            "find_kept",
            ("  AND waiting.state IS NOT DISTINCT FROM 'waiting'", "  AND waiting.state = 'none'"),
            ("  AND +waiting.state = 'waiting'", "  AND waiting.state = 'none'"),
        ),
    )


# The other limit becomes free while somebody is sent on to it.


def one_runs_under_b() -> Script:
    yield from waiting(limited(JOB, "b"), limited(OTHER_JOB, "a", "b"))()
    while (yield handing.hand_over()).queued:
        yield from nothing()
    yield claim(FIRST)
    yield store.submit_gated([limited(THIRD_JOB, "a", "b")])


def nobody_is_stranded(story: Story) -> None:
    assert story.results["worker"] == [JOB]
    settle(story)
    assert len(turned(story)) == 1, "a turn is free under both, somebody waits, and nobody looks"


sent_on = Scenario(
    "hand_over that sends on × end under the other limit × hand_over",
    one_runs_under_b,
    [hander("first"), Actor("worker", ending), hander("second")],
    nobody_is_stranded,
)


@named(66)
def test_who_is_sent_on_to_a_limit_that_becomes_free_is_not_forgotten(race: Race) -> None:
    race(sent_on, share=0.3)


@named(66)
@in_modes("plain", "held")
def test_who_is_sent_on_is_forgotten_where_an_end_tells_nobody(race: Race) -> None:
    race.turns_red(
        sent_on,
        Cut("succeed", ("FROM ended WHERE ended.limits IS NOT NULL", "FROM ended WHERE false")),
    )


# A change of the limit.


def lowering(_: Any) -> Script:
    """Lowers the limit; then looks how many have a turn, and hands over itself."""
    yield redefine(Limit("a", at_once=1), revision=1, actor=None, reason=None)
    seen = yield store.read_fences([JOB, OTHER_JOB, THIRD_JOB])
    yield handing.hand_over(["limit:a"])
    return sum(each.state.value != "waiting" for each in seen.values())


def nobody_comes_after_it_was_lowered(story: Story) -> None:
    assert len(turned(story)) <= max(1, story.results["changer"]), (
        "a turn was given that the new limit forbids"
    )
    settle(story)
    assert turned(story)


lowered = Scenario(
    "hand_over × a lower limit",
    waiting(*(limited(each, "a") for each in (JOB, OTHER_JOB, THIRD_JOB)), limits=(Limit("a", at_once=3),)),
    [Actor("changer", lowering), hander("second", "limit:a")],
    nobody_comes_after_it_was_lowered,
)


@named(66)
def test_a_lower_limit_holds_from_its_commit_on(race: Race) -> None:
    race(lowered, share=0.3)


@named(66)
@in_modes("plain", "held")
def test_a_turn_is_given_past_a_lower_limit_that_is_not_locked(race: Race) -> None:
    race.turns_red(lowered, Cut("keep_limits", ("pg_advisory_xact_lock_shared(each.lock)", "each.lock")))


def removing(_: Any) -> Script:
    return (yield remove("a", revision=1))


def all_go(story: Story) -> None:
    assert story.results["remover"] is True
    settle(story)
    assert turned(story) == [JOB, OTHER_JOB], "a limit that is gone binds nobody"


removal = Scenario(
    "hand_over × remove of the limit",
    waiting(limited(JOB, "a"), limited(OTHER_JOB, "a"), limits=(A,)),
    [Actor("remover", removing), hander("second", "limit:a")],
    all_go,
)


@named(66)
def test_who_waits_under_a_limit_that_is_removed_goes_on(race: Race) -> None:
    race(removal)


@named(66)
def test_who_waits_under_a_removed_limit_is_forgotten_without_an_arrival(race: Race) -> None:
    known = "WHERE gate.name = 'limit:' || :name OR"
    race.turns_red(removal, Cut("arrive_at_limit", *[(known, known.replace("'limit:'", "'none:'"))] * 2))


# Rates.


def one_of_the_rate(story: Story) -> None:
    settle(story)
    given = [*story.results["first"], *story.results["second"]]
    assert len(given) <= 1, "a rate of one gave two turns"
    assert len(given) + len(turned(story)) >= 1


cancelled = Scenario(
    "hand_over × hand_over under a rate × cancel of who got the turn",
    waiting(limited(JOB, "a"), limited(OTHER_JOB, "a"), limits=(Limit("a", rate=Rate(1, per_s=3_600)),)),
    [
        hander("first", "limit:a"),
        Actor("person", lambda _: (yield cancel(JOB))),
        hander("second", "limit:a"),
    ],
    one_of_the_rate,
)


@named(66)
def test_a_turn_of_a_rate_is_not_given_twice_because_its_job_was_cancelled(race: Race) -> None:
    race(cancelled, share=0.3)


@named(66)
def test_a_rate_that_is_not_written_gives_its_turn_twice(race: Race) -> None:
    race.turns_red(
        cancelled,
        Cut("keep_limit_state", (":state,", "'{}',"), (":state,", "'{}',")),
    )
