"""Races for a job with affinity: of those who carry its label, all others, and whoever cancels it, one has it; the
others not before its wait is over."""

from __future__ import annotations

from typing import Any

from fencerow.core.store import store
from fencerow.operators import changes, looking
from fencerow.operators.job_change import job_change
from fencerow.turns import affinity
from fencerow_proof.arena.actor import Actor, Script, later
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race
from tests.proof.race.named import named
from tests.proof.race.people import (
    FIRST,
    JOB,
    LEASE_S,
    SECOND,
    cancel,
    claim,
    new_job,
    register,
    state,
    succeed,
)
from tests.proof.race.test_claim import CLAIM_UNGUARDED

WAIT_S = 5.0
FALLS_WHATEVER_IT_IS = (
    Cut(
        "fall_back",
        ("job.state = 'queued'", "job.state <> 'succeeded'"),
        ("state = 'queued'", "state <> 'succeeded'"),
    ),
    Cut("fall_back", ("job.state IS NOT DISTINCT FROM 'queued'", "job.state <> 'succeeded'")),
    Cut("fall_back", ("FOR UPDATE SKIP LOCKED", "")),
)
AT_ANY_TIME = (
    Cut(
        "fall_back",
        ("<= (SELECT fencerow.now())", "IS NOT NULL"),
        ("<= (SELECT fencerow.now())", "IS NOT NULL"),
    ),
    Cut(
        "fall_back",
        ("<= (SELECT greatest(fencerow.now(), ", "<= (SELECT greatest('infinity', "),
        ("<= (SELECT max(fencerow.now(), ", "<= (SELECT max(9e18, "),
    ),
)
FROM_ANY_LANE = (
    Cut(
        "claim",
        ("AND fencerow.lane(queued) = lane.mark ->> 1", ""),
        ("AND queued.lane = json_extract(lane.value, '$[1]')", ""),
    ),
)
STAYS_OPEN = (Cut("change", ("    fell_back_for = 0,\n", ""), ("    fell_back_for = 0,\n", "")),)


def waiting(*, over: bool) -> Any:
    """A setup: a job that waits for a label; `over`: long enough."""

    def setup() -> Script:
        for holder in (FIRST, SECOND):
            yield register(holder)
        yield store.submit_gated([new_job(affinity="gpu", affinity_wait_s=WAIT_S)])
        if over:
            yield later(WAIT_S + 1)

    return setup


def by_label(_: Any) -> Script:
    lanes = [store.Mark(0, lane="label:gpu"), store.Mark(0)]
    claimed = yield store.claim("mail", lanes, holder=FIRST, names=["send"], limit=1, margin_s=10.0)
    moved = (yield succeed(FIRST, claimed[0].attempt)) if claimed else []
    return [job.id for job in claimed], [each.id for each in moved]


def by_anybody(_: Any) -> Script:
    claimed = yield claim(SECOND)
    moved = (yield succeed(SECOND, claimed[0].attempt)) if claimed else []
    return [job.id for job in claimed], [each.id for each in moved]


def falling_back(_: Any) -> Script:
    moved = yield affinity.fall_back(actor="worker w")
    return [each.id for each in moved]


def cancelling(_: Any) -> Script:
    yield cancel()


def passing(_: Any) -> Script:
    yield later(WAIT_S + 1)


LABELLED, ANYBODY = Actor("labelled", by_label), Actor("anybody", by_anybody)
FALLING, TIME = Actor("falling", falling_back), Actor("time", passing)


def one_has_it(story: Story) -> None:
    (own, own_end), (others, others_end) = story.results["labelled"], story.results["anybody"]
    noted = [each.attempt for each in story.run(looking.events(JOB)) if each.kind == "fell_back"]
    assert set(noted) <= {0}, "it met a job that runs"
    assert len(own) + len(others) <= 1, "two workers have it"
    assert not others or story.results["falling"] == [JOB], "it was nobody's but a labelled worker's"
    if own_end or others_end:
        assert state(story) == "succeeded"
    elif own or others:
        assert state(story) == "running", "a locked row is left, and its end written again"
    else:
        assert state(story) in ("queued", "waiting", "cancelled")


def never_too_early(story: Story) -> None:
    one_has_it(story)
    job = story.run(store.read([JOB]))[JOB]
    for each in story.run(looking.events(JOB)):
        if each.kind == "fell_back":
            assert each.at_us >= job.run_at_us + WAIT_S * 1e6, "its wait was not over"


against_all = Scenario(
    "claim by label × claim × fall_back", waiting(over=True), [LABELLED, ANYBODY, FALLING], one_has_it
)
against_time = Scenario(
    "claim by label × claim × fall_back × the end of the wait",
    waiting(over=False),
    [LABELLED, ANYBODY, FALLING, TIME],
    never_too_early,
)


def changing(_: Any) -> Script:
    yield changes.change(JOB, job_change(priority=1), actor="ada")


def changed_waits_again(story: Story) -> None:
    """A change that came after the fall-back takes it back."""
    (others, _), falling = story.results["anybody"], story.results["falling"]
    kinds = [each.kind for each in story.run(looking.events(JOB))]
    job = story.run(store.read([JOB]))[JOB]
    assert not others or falling == [JOB]
    if job.state == "queued":
        assert (job.lane == "label:gpu") == (kinds[-1:] != ["fell_back"]), kinds


against_change = Scenario(
    "claim × fall_back × change",
    waiting(over=True),
    [ANYBODY, FALLING, Actor("person", changing)],
    changed_waits_again,
)
against_cancel = Scenario(
    "claim by label × claim × fall_back × cancel",
    waiting(over=True),
    [LABELLED, ANYBODY, FALLING, Actor("person", cancelling)],
    one_has_it,
)
assert LEASE_S > WAIT_S + 1, "the workers live on"


@named(68)
def test_one_of_those_who_carry_the_label_and_of_all_others_has_it(race: Race) -> None:
    race(against_all)


@named(68)
def test_nobody_else_has_it_before_its_wait_is_over(race: Race) -> None:
    race(against_time)


@named(68)
def test_a_cancel_and_the_claims_have_one_winner(race: Race) -> None:
    race(against_cancel)


@named(68)
def test_two_have_it_when_a_claim_by_label_is_unguarded(race: Race) -> None:
    race.turns_red(against_all, *CLAIM_UNGUARDED)


@named(68)
def test_what_runs_is_met_when_a_fall_back_does_not_ask_for_its_state(race: Race) -> None:
    race.turns_red(against_all, *FALLS_WHATEVER_IT_IS)


@named(68)
def test_others_have_it_too_early_when_the_end_of_its_wait_is_not_asked_for(race: Race) -> None:
    race.turns_red(against_time, *AT_ANY_TIME)


@named(68)
def test_others_have_it_at_once_when_their_claims_ask_for_no_lane(race: Race) -> None:
    race.turns_red(against_time, *FROM_ANY_LANE)


@named(68)
def test_a_change_lets_it_wait_for_its_label_again(race: Race) -> None:
    race(against_change)


@named(68)
def test_it_does_not_when_the_change_leaves_the_fall_back(race: Race) -> None:
    race.turns_red(against_change, *STAYS_OPEN)
