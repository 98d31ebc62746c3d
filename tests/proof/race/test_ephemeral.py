"""Races of ephemeral jobs: their success leaves an id alone, and that must be enough."""

from __future__ import annotations

from fencerow.core.store import store
from fencerow.core.store.attempts import AWAITED_S
from fencerow.errors import JobGone
from fencerow_proof.arena.actor import Script, doing, later
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import (
    FIRST,
    JOB,
    LEASE_S,
    SECOND,
    acting,
    claim,
    die,
    fence,
    finishing,
    new_job,
    reclaim,
    register,
    revive,
    state,
    succeed,
    with_jobs,
    with_running,
    working,
)  # fmt: skip

EPHEMERAL = new_job(ephemeral=True)


def one_worker() -> Script:
    yield register(FIRST)


# A submit whose reply was lost is repeated while the job runs and is over.


def losing_the_reply() -> Script:
    yield store.submit([EPHEMERAL])
    return (yield store.resubmit([EPHEMERAL]))


def ran_once(story: Story) -> None:
    claimed, moved = story.results["worker"]
    assert story.results["client"] == []
    assert state(story) == ("succeeded" if moved else "queued")
    assert claimed == moved
    assert not (moved and story.run(store.read([JOB]))), "its success left a row"


lost_submit = Scenario(
    "lost submit of an ephemeral job × claim × succeed × resubmit",
    one_worker,
    [acting("client", losing_the_reply), working("worker", FIRST)],
    ran_once,
)


@named(15)
def test_a_repeated_submit_never_runs_a_spent_job_again(race: Race) -> None:
    race(lost_submit)


@named(15)
def test_it_does_when_the_id_is_not_kept(race: Race) -> None:
    race.turns_red(
        lost_submit,
        Cut(
            "succeed",
            ("FROM ended WHERE ended.ephemeral\n", "FROM ended WHERE false\n"),
            ("WHERE ended.ephemeral = 1 AND ended.state = 'succeeded'", "WHERE false"),
        ),
    )


@named(15)
def test_it_does_when_nobody_looks_among_the_spent(race: Race) -> None:
    race.turns_red(
        lost_submit,
        Cut(
            "withdraw",
            ("spent.id = job.id)", "false)"),
            ("OR id IN (SELECT spent.id", "AND id IN (SELECT spent.id"),
        ),
    )


# Somebody begins to wait while it ends.


def waiting() -> Script:
    found = yield store.outcomes([JOB])
    if not found:
        yield store.mark_awaited([JOB])
        found = yield store.outcomes([JOB])
    return list(found)


def marked_in_time_is_answered(story: Story) -> None:
    record = story.run(store.read([JOB])).get(JOB)
    moved = story.results["worker"]
    assert [job.id for job in moved] == [JOB]
    if moved[0].awaited:
        assert record is not None, "somebody waited, and the result is gone"
        assert record.retention_s == AWAITED_S
    else:
        assert record is None


awaited = Scenario(
    "ephemeral succeed × wait",
    with_running(EPHEMERAL),
    [doing("worker", succeed(FIRST)), acting("waiter", waiting)],
    marked_in_time_is_answered,
)


def test_who_marked_it_in_time_gets_the_result(race: Race) -> None:
    race(awaited)


def test_nobody_gets_it_when_it_is_not_kept_for_them(race: Race) -> None:
    race.turns_red(
        awaited,
        Cut(
            "succeed",
            ("WHERE awaited OR NOT ephemeral", "WHERE NOT ephemeral"),
            ("awaited = 1 OR ephemeral = 0 OR state <> 'succeeded'", "ephemeral = 0 OR state <> 'succeeded'"),
        ),
    )


# A zombie: its worker is declared dead while it ends.


def first_expired() -> Script:
    yield from with_running(EPHEMERAL)()
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)


def sweeping() -> Script:
    yield die(SECOND)
    found, _ = yield reclaim(FIRST)
    claimed = yield store.claim_suspect("mail", holder=SECOND, names=["send"], margin_s=10.0)
    moved = yield from finishing(SECOND, [(job.id, job.attempt) for job in claimed])
    return len(found), moved


def spent_once(story: Story) -> None:
    zombie = story.results["zombie"]
    taken, _ = story.results["second"]
    assert len(zombie) + taken == 1, "the zombie's success and the reclaim both counted"
    found = fence(story)
    assert found is not None and found.attempt == 1 + taken


zombie = Scenario(
    "ephemeral succeed × die × reclaim × second attempt",
    first_expired,
    [doing("zombie", succeed(FIRST)), acting("second", sweeping)],
    spent_once,
)


def test_a_zombie_and_a_reclaim_never_both_count(race: Race) -> None:
    race(zombie)


@in_modes("plain", "held")
def test_both_do_without_the_fence(race: Race) -> None:
    race.turns_red(
        zombie,
        Cut(
            "succeed",
            ("AND job.holder = CAST(:holder AS uuid)\n      AND job.attempt = outcome.attempt\n", ""),
        ),
        Cut("succeed", ("AND job.state IS NOT DISTINCT FROM 'running'", "")),
    )


# Nobody can bring it back.


def spent() -> Script:
    yield from with_jobs(new_job(ephemeral=True))()
    yield claim(FIRST)
    yield store.mark_awaited([JOB])
    yield succeed(FIRST)


def stays_spent(story: Story) -> None:
    assert isinstance(story.results["someone"], JobGone), story.results["someone"]
    assert story.results["client"] == []
    assert state(story) == "succeeded"


revived = Scenario(
    "resubmit × revive of a spent job that is kept for those who wait",
    spent,
    [doing("client", store.resubmit([EPHEMERAL])), doing("someone", revive())],
    stays_spent,
)


def test_a_spent_job_is_not_revived(race: Race) -> None:
    race(revived)


def test_it_is_when_its_row_may_be_locked_for_that(race: Race) -> None:
    race.turns_red(
        revived,
        Cut(
            "lock_finished",
            ("NOT (job.ephemeral AND job.state = 'succeeded')", "true"),
            ("NOT (job.ephemeral = 1 AND job.state = 'succeeded')", "true"),
        ),
    )
