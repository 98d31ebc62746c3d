"""Races for a queued job: at most one wins it."""

from __future__ import annotations

from typing import Any

from fencerow.core.store import store
from fencerow.errors import IllegalMove
from fencerow.operators.queues import pause_queue
from fencerow_proof.arena.actor import Actor, Script, doing, later, transaction
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import (
    FIRST,
    JOB,
    LEASE_S,
    OTHER_JOB,
    SECOND,
    THIRD_JOB,
    acting,
    cancel,
    claim,
    new_job,
    requeue,
    state,
    sweep,
    with_jobs,
    working,
)  # fmt: skip

# Every inner guard of a claim has an outer twin; a job is claimed twice only without both and without the lock.
CLAIM_UNGUARDED = (
    Cut(
        "claim",
        ("(job.state IS NOT DISTINCT FROM 'queued' AND", "(true AND"),
        ("(state = 'queued' AND", "(true AND"),
    ),
    Cut("claim", ("AND queued.state = 'queued'", ""), ("AND queued.state = 'queued'", "")),
    Cut("claim", ("FOR UPDATE SKIP LOCKED", "")),
)


def one_claims(story: Story) -> None:
    (first_got, first_moved), (second_got, second_moved) = story.results["first"], story.results["second"]

    assert [*first_got, *second_got] == [JOB]
    assert [*first_moved, *second_moved] == [JOB]
    assert state(story) == "succeeded"


claim_claim = Scenario(
    "claim × claim", with_jobs(), [working("first", FIRST), working("second", SECOND)], one_claims
)


def test_of_two_workers_one_claims(race: Race) -> None:
    race(claim_claim)


def test_two_workers_claim_one_job_when_a_claim_is_unguarded(race: Race) -> None:
    race.turns_red(claim_claim, *CLAIM_UNGUARDED)


def claiming_slowly(name: str, holder: str, limit: int = 1) -> Actor:
    """A claim inside a longer transaction: others meet its locks."""

    def steps() -> Any:
        got = yield from claim(holder, limit).steps()
        yield from store.clock().steps()
        return got

    def script(_: Any) -> Script:
        return [job.id for job in (yield transaction("slow claim", steps))]

    return Actor(name, script)


def nobody_shares(story: Story) -> None:
    got = [*story.results["first"], *story.results["second"]]

    assert len(got) == len(set(got))
    assert all(len(story.results[name]) <= 2 for name in ("first", "second"))
    assert not story.waited, "a claim waited for a lock"


batches = Scenario(
    "batch claim × batch claim",
    with_jobs(new_job(JOB), new_job(OTHER_JOB), new_job(THIRD_JOB)),
    [claiming_slowly("first", FIRST, 2), claiming_slowly("second", SECOND, 2)],
    nobody_shares,
)


def test_batches_never_share_a_job_nor_wait(race: Race) -> None:
    race(batches)


@in_modes("plain", "held")
def test_a_batch_waits_without_skip_locked(race: Race) -> None:
    race.turns_red(batches, Cut("claim", ("FOR UPDATE SKIP LOCKED", "FOR UPDATE")))


IN_SELECT = (
    Cut("claim", ("job.id = ANY(ARRAY(", "job.id IN (")),
    Cut(
        "claim",
        (
            "            LIMIT CAST(:limit AS integer)\n        ) || CAST(:given AS uuid[]))",
            "            LIMIT CAST(:limit AS integer)\n        )",
        ),
    ),
)
NESTED_LOOP = {
    "enable_hashjoin": "off", "enable_mergejoin": "off", "enable_material": "off", "enable_hashagg": "off",
    "enable_sort": "off", "enable_memoize": "off", "jit": "off",
}  # fmt: skip
forced = Scenario(
    "claim under a nested loop",
    with_jobs(new_job(JOB), new_job(OTHER_JOB), new_job(THIRD_JOB)),
    [doing("first", claim(FIRST, 1))],
    lambda story: None,
    NESTED_LOOP,
)


@in_modes("plain", "held")
def test_a_claim_keeps_its_limit_under_a_nested_loop(race: Race) -> None:
    race(forced)


@in_modes("plain", "held")
def test_an_in_subselect_claims_too_many_under_it(race: Race) -> None:
    told = race.turns_red(forced, *IN_SELECT)

    assert "claimed 3 jobs, asked for 1" in str(told)


def cancel_or_claim(story: Story) -> None:
    answer = story.results["cancel"]
    claimed, moved = story.results["worker"]

    if isinstance(answer, IllegalMove):
        assert claimed == moved == [JOB]
        assert answer.state == state(story) == "succeeded"
    elif answer.moved is not None:
        assert claimed == moved == []
        assert state(story) == "cancelled"
    else:
        assert answer.holder == FIRST
        assert claimed == [JOB]


claim_cancel = Scenario(
    "claim × cancel", with_jobs(), [working("worker", FIRST), doing("cancel", cancel())], cancel_or_claim
)


def test_a_job_is_claimed_or_cancelled(race: Race) -> None:
    race(claim_cancel)


def test_a_running_job_is_cancelled_without_the_state_guard(race: Race) -> None:
    race.turns_red(
        claim_cancel,
        Cut(
            "cancel_idle",
            ("      AND job.state IN ('waiting', 'queued')\n", ""),
            ("AND state IN ('waiting', 'queued')", ""),
        ),
    )


def pausing() -> Script:
    yield pause_queue("mail", actor="someone")
    return (yield claim(SECOND))


def nothing_after_the_pause(story: Story) -> None:
    assert story.results["pause"] == []


pause_claim = Scenario(
    "pause_queue × claim",
    with_jobs(new_job(JOB), new_job(OTHER_JOB)),
    [acting("pause", pausing), doing("worker", claim(FIRST))],
    nothing_after_the_pause,
)


def test_nothing_is_claimed_after_a_pause(race: Race) -> None:
    race(pause_claim)


def test_a_claim_ignores_a_pause_without_its_guard(race: Race) -> None:
    race.turns_red(
        pause_claim,
        Cut("claim", ("queue.paused_at IS NOT NULL", "false"), ("queue.paused_at IS NOT NULL", "0")),
    )


def late_worker() -> Script:
    alive = yield store.renew(holder=FIRST)
    return alive, [job.id for job in (yield claim(FIRST))]


def expired_first() -> Script:
    yield from with_jobs()()
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)


def the_dead_claim_nothing(story: Story) -> None:
    alive, claimed = story.results["first"]
    assert alive or claimed == [], "a worker that was told of its death claimed"
    if not alive:
        assert FIRST in story.results["reaper"]


die_claim = Scenario(
    "die × claim",
    expired_first,
    [acting("first", late_worker), acting("reaper", sweep)],
    the_dead_claim_nothing,
)


@named(2)
def test_a_worker_declared_dead_claims_nothing(race: Race) -> None:
    race(die_claim)


@named(2)
def test_a_dead_worker_claims_without_the_look_at_its_own_row(race: Race) -> None:
    race.turns_red(
        die_claim,
        Cut(
            "claim",
            (
                "worker.id = CAST(:holder AS uuid) AND worker.state = 'alive'",
                "worker.id = CAST(:holder AS uuid)",
            ),
            ("worker.id = :holder AND worker.state = 'alive'", "worker.id = :holder"),
        ),
    )


def losing_the_reply() -> Script:
    yield claim(FIRST)  # the reply never comes: the worker knows of no job
    for held in (yield store.holdings(holder=FIRST)):
        yield requeue(FIRST, held.attempt, "released", held.id)


def nobody_is_left_with_an_unknown_job(story: Story) -> None:
    assert story.run(store.holdings(holder=FIRST)) == []


lost_claim = Scenario(
    "claim with a lost reply × claim",
    with_jobs(),
    [acting("first", losing_the_reply), working("second", SECOND)],
    nobody_is_left_with_an_unknown_job,
)


@named(4)
def test_a_claim_whose_reply_was_lost_is_let_go(race: Race) -> None:
    race(lost_claim)


@named(4)
def test_an_unknown_job_stays_running_when_holdings_miss_it(race: Race) -> None:
    race.turns_red(
        lost_claim,
        Cut(
            "requeue",
            ("AND job.attempt = outcome.attempt", "AND job.attempt > outcome.attempt"),
            ("fencerow.jobs.attempt = json", "fencerow.jobs.attempt > json"),
        ),
    )


# The connection of a claim breaks, and the server runs it all the same, beside the worker's next one.


def three_suspects() -> Script:
    yield from with_jobs(new_job(JOB), new_job(OTHER_JOB), new_job(THIRD_JOB))()
    yield claim(FIRST, 3)
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)
    yield from sweep()


def taking_a_suspect(name: str) -> Actor:
    return doing(name, store.claim_suspect("mail", holder=SECOND, names=["send"], margin_s=10.0, at_most=2))


def two_suspects_at_most(story: Story) -> None:
    held = story.run(store.holdings(holder=SECOND))
    assert len(held) == 2, f"one worker runs {len(held)} suspects at once"


suspects = Scenario(
    "claim_suspect × the same worker's claim_suspect",
    three_suspects,
    [taking_a_suspect("broken"), taking_a_suspect("next")],
    two_suspects_at_most,
)


@named(6)
def test_a_worker_never_holds_more_suspects_than_it_may(race: Race) -> None:
    race(suspects)


@in_modes("held")
@named(6)
def test_it_does_when_its_claims_do_not_take_turns(race: Race) -> None:
    lock = "pg_try_advisory_xact_lock(hashtextextended(CAST(CAST(:holder AS uuid) AS text), 7300))"
    race.turns_red(suspects, Cut("lock_suspects", (lock, ":holder <> ''")))


@named(6)
def test_it_does_without_the_look_at_what_it_runs(race: Race) -> None:
    race.turns_red(
        suspects,
        Cut(
            "count_suspects",
            ("job.holder = CAST(:holder AS uuid)", "false"),
            ("job.holder = :holder", "0"),
        ),
    )
