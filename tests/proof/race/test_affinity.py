"""Races for a job with affinity: of those who carry its label, all others, and whoever cancels it, one has it; the
others not before its wait is over."""

from __future__ import annotations

from typing import Any

from fencerow.core.store import store
from fencerow.operators import looking
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

WAIT_S = 5.0
POSTGRES_GUARD = (
    "      AND (job.state = 'queued' "
    "OR job.state = 'waiting' AND job.affinity = ANY(CAST(:labels AS text[])))\n"
)
SQLITE_GUARD = (
    "  AND (state = 'queued' OR state = 'waiting' AND affinity IN (SELECT value FROM json_each(:labels)))\n"
)
# Every inner guard has an outer twin, as in claim.
UNGUARDED = (
    Cut("claim_labelled", (POSTGRES_GUARD, ""), (SQLITE_GUARD, "")),
    Cut("claim_labelled", ("AND queued.state = 'waiting'", ""), ("AND queued.state = 'waiting'", "")),
    Cut("claim_labelled", ("FOR UPDATE SKIP LOCKED", "")),
)
FALLS_WHATEVER_IT_IS = (
    Cut(
        "fall_back",
        ("job.state = 'waiting'", "job.state <> 'succeeded'"),
        ("state = 'waiting'", "state <> 'succeeded'"),
    ),
    Cut("fall_back", ("FOR UPDATE SKIP LOCKED", "")),
)
AT_ANY_TIME = (
    Cut(
        "fall_back",
        ("<= (SELECT fencerow.now())", "IS NOT NULL"),
        ("<= (SELECT fencerow.now())", "IS NOT NULL"),
    ),
)
FOR_ANYBODY = (
    Cut(
        "claim",
        ("queued.state = 'queued'", "queued.state IN ('queued', 'waiting')"),
        ("queued.state = 'queued'", "queued.state IN ('queued', 'waiting')"),
    ),
    Cut("claim", ("job.state = 'queued'", "job.state IN ('queued', 'waiting')"), None),
    Cut("claim", None, ("AND state = 'queued'", "AND state IN ('queued', 'waiting')")),
)


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
    claimed = yield store.claim_labelled(
        "mail", [store.Mark(0)], ["gpu"], holder=FIRST, names=["send"], limit=1, margin_s=10.0
    )
    moved = (yield succeed(FIRST, claimed[0].attempt)) if claimed else []
    return [job.id for job in claimed], [each.id for each in moved]


def by_anybody(_: Any) -> Script:
    claimed = yield claim(SECOND)
    moved = (yield succeed(SECOND, claimed[0].attempt)) if claimed else []
    return [job.id for job in claimed], [each.id for each in moved]


def falling_back(_: Any) -> Script:
    moved = yield store.fall_back(actor="worker w")
    return [each.id for each in moved]


def cancelling(_: Any) -> Script:
    yield cancel()


def passing(_: Any) -> Script:
    yield later(WAIT_S + 1)


LABELLED, ANYBODY = Actor("labelled", by_label), Actor("anybody", by_anybody)
FALLING, TIME = Actor("falling", falling_back), Actor("time", passing)


def one_has_it(story: Story) -> None:
    (own, own_end), (others, others_end) = story.results["labelled"], story.results["anybody"]
    assert isinstance(story.results["falling"], list), "it met a job that runs"
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
    race.turns_red(against_all, *UNGUARDED)


@named(68)
def test_what_runs_is_met_when_a_fall_back_does_not_ask_for_its_state(race: Race) -> None:
    race.turns_red(against_all, *FALLS_WHATEVER_IT_IS)


@named(68)
def test_others_have_it_too_early_when_the_end_of_its_wait_is_not_asked_for(race: Race) -> None:
    race.turns_red(against_time, *AT_ANY_TIME)


@named(68)
def test_others_have_it_at_once_when_their_claims_look_at_what_waits(race: Race) -> None:
    race.turns_red(against_time, *FOR_ANYBODY)
