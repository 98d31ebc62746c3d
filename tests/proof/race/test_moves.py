"""Races of what people ask for: cancel, revive, and what retention removes meanwhile."""

from __future__ import annotations

from fencerow.core.model.state import FINAL, State
from fencerow.core.store import store
from fencerow.errors import IllegalMove, JobNotFound
from fencerow.retention.disown import disown
from fencerow.retention.purging import purge_by_age
from fencerow_proof.arena.actor import Script, doing, later
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import (
    FIRST,
    JOB,
    SECOND,
    acting,
    cancel,
    claim,
    fence,
    finishing,
    revive,
    state,
    succeed,
    with_jobs,
    working,
)  # fmt: skip


def honest(story: Story) -> None:
    """An answer may be overtaken, but was true once."""
    answer = story.results["cancel"]
    assert not isinstance(answer, JobNotFound), "a job that exists all the time was not found"
    if isinstance(answer, IllegalMove):
        assert answer.state in FINAL, f"refused because the job was {answer.state}, which can be cancelled"
    revived = story.results.get("reviver")
    if isinstance(revived, Exception):
        assert isinstance(revived, IllegalMove), revived
        assert revived.state not in FINAL, (
            f"refused because the job was {revived.state}, which can be revived"
        )


cancel_loop = Scenario(
    "cancel × claim × succeed × revive",
    with_jobs(),
    [doing("cancel", cancel()), working("worker", FIRST), doing("reviver", revive())],
    honest,
)


@named(11, 12)
def test_a_cancel_is_never_told_what_was_not(race: Race) -> None:
    race(cancel_loop)


@named(11, 12)
def test_a_moved_job_is_not_found_when_only_the_live_are_looked_at(race: Race) -> None:
    race.turns_red(
        cancel_loop,
        Cut("read_fences", ("fencerow.all_jobs", "fencerow.jobs"), ("fencerow.all_jobs", "fencerow.jobs")),
    )


# Revive.


def finished() -> Script:
    yield from with_jobs()()
    yield claim(FIRST)
    yield succeed(FIRST)


def revived_once(story: Story) -> None:
    answers = [story.results["first"], story.results["second"]]
    refused = [answer for answer in answers if isinstance(answer, Exception)]
    for answer in refused:
        assert isinstance(answer, IllegalMove), answer
        assert answer.state not in FINAL, f"refused because the job was {answer.state}, which can be revived"
    found = fence(story)
    assert found is not None
    assert found.attempt == 1 + len(story.results["worker"][0])


revive_revive = Scenario(
    "revive × revive × claim × succeed",
    finished,
    [doing("first", revive()), doing("second", revive()), working("worker", SECOND)],
    revived_once,
)


@named(12)
def test_a_refused_revive_says_why_it_could_not_be(race: Race) -> None:
    race(revive_revive)


def stale() -> Script:
    return (yield succeed(FIRST, 1))


def at_it_again() -> Script:
    yield revive()
    claimed = yield claim(SECOND)
    return (yield from finishing(SECOND, [(job.id, job.attempt) for job in claimed]))


def the_old_attempt_is_over(story: Story) -> None:
    assert story.results["stale"] == []
    record = story.run(store.read([JOB]))[JOB]
    assert (record.state, record.attempt) in [(State.SUCCEEDED, 2), (State.RUNNING, 2), (State.QUEUED, 1)]


revive_stale = Scenario(
    "revive × stale succeed",
    finished,
    [acting("stale", stale), acting("again", at_it_again)],
    the_old_attempt_is_over,
)


def test_a_stale_success_does_not_end_a_revived_job(race: Race) -> None:
    race(revive_stale)


def test_it_does_without_the_fence(race: Race) -> None:
    race.turns_red(
        revive_stale,
        Cut(
            "succeed",
            (
                "AND job.holder = CAST(:holder AS uuid)\n      AND job.attempt = outcome.attempt\n",
                "",
            ),
            ("\n  AND +job.holder = :holder\n  AND job.attempt = json_extract(o.value, '$.attempt')", ""),
        ),
        Cut(
            "succeed", ("AND job.state IS NOT DISTINCT FROM 'running'", ""), ("job.state = 'running'", "true")
        ),
    )


# Retention.


def finished_long_ago() -> Script:
    yield from finished()
    yield later(7200.0)
    yield store.renew(holder=SECOND)


PURGE = purge_by_age(State.SUCCEEDED, age_s=3600.0, limit=10)


def purged_or_revived(story: Story) -> None:
    purged, revived = story.results["purge"], story.results["revive"]
    if purged:
        assert isinstance(revived, JobNotFound)
        assert state(story) is None
    else:
        assert not isinstance(revived, Exception), revived
        assert state(story) == "queued"


purge_revive = Scenario(
    "purge × revive", finished_long_ago, [doing("purge", PURGE), doing("revive", revive())], purged_or_revived
)


def test_a_job_is_purged_or_revived(race: Race) -> None:
    race(purge_revive)


def reviving_and_ending() -> Script:
    yield revive()
    claimed = yield claim(SECOND)
    return (yield from finishing(SECOND, [(job.id, job.attempt) for job in claimed]))


def a_young_end_is_kept(story: Story) -> None:
    again, purged = story.results["again"], story.results["purge"]
    if not isinstance(again, Exception):
        assert purged == 0, "an end of a moment ago was purged"
        assert state(story) is not None


purge_again = Scenario(
    "purge × revive × claim × succeed",
    finished_long_ago,
    [doing("purge", PURGE), acting("again", reviving_and_ending)],
    a_young_end_is_kept,
)


def test_a_job_that_ended_again_is_kept(race: Race) -> None:
    race(purge_again)


AGE = "(SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))"


def test_it_is_purged_without_the_look_at_its_age(race: Race) -> None:
    race.turns_red(
        purge_again,
        Cut(
            "purge_by_age",
            (f"          AND old.ended_at < {AGE}\n", ""),
            ("      AND old.ended_at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)\n", ""),
        ),
    )


def deleted_or_revived(story: Story) -> None:
    deleted, revived = story.results["delete"], story.results["revive"]
    if deleted:
        assert isinstance(revived, JobNotFound)
        assert state(story) is None
    else:
        assert state(story) == "queued"


def test_a_job_is_deleted_or_revived(race: Race) -> None:
    race(
        Scenario(
            "delete × revive",
            finished,
            [doing("delete", store.delete([JOB])), doing("revive", revive())],
            deleted_or_revived,
        )
    )


def purge_beside_a_revive() -> Scenario:
    def unhindered(story: Story) -> None:
        assert "purge" not in story.waited

    return Scenario(
        "purge × revive, without waiting",
        finished_long_ago,
        [doing("purge", PURGE), doing("revive", revive())],
        unhindered,
    )


@in_modes("plain", "held")
def test_a_purge_waits_for_nobody(race: Race) -> None:
    race(purge_beside_a_revive())


@in_modes("plain", "held")
def test_a_purge_that_skips_nothing_waits(race: Race) -> None:
    race.turns_red(purge_beside_a_revive(), Cut("purge_by_age", ("        FOR UPDATE SKIP LOCKED\n", "")))


# A job that no code knows is about to be given up when a worker comes that knows it.


def unknown_for_long() -> Script:
    yield from with_jobs(workers=())()
    yield later(1_000.0)


def comes_and_claims() -> Script:
    yield store.register(holder=FIRST, name="w", host="h", pid=1, info='{"names": ["send"]}', lease_s=30.0)
    return [job.id for job in (yield claim(FIRST))]


def one_of_them_has_it(story: Story) -> None:
    given_up = [job.id for job in story.results["disowner"]]
    claimed = story.results["newcomer"]
    assert sorted(given_up + claimed) == [JOB], "it was lost, or had two fates"
    assert state(story) == (State.FAILED if given_up else State.RUNNING)


disowning = Scenario(
    "disown × register × claim",
    unknown_for_long,
    [
        doing("disowner", disown("mail", 0, age_s=500.0, look=10, actor=None)),
        acting("newcomer", comes_and_claims),
    ],
    one_of_them_has_it,
)


def test_a_job_that_is_claimed_is_not_given_up(race: Race) -> None:
    race(disowning)


@in_modes("held")
def test_a_claimed_job_is_given_up_without_the_look_at_its_state(race: Race) -> None:
    race.turns_red(
        disowning,
        Cut("disown", ("          AND late.state IS NOT DISTINCT FROM 'queued'\n", "")),
        Cut(
            "disown", ("  AND job.state IS NOT DISTINCT FROM 'queued'\n  AND job.run_at", "  AND job.run_at")
        ),
    )
