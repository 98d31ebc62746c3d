"""Races of submits: under one key, repeated after a lost reply, and inside a user's transaction."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from psycopg.errors import UniqueViolation

from fencerow.core.model.job import NewJob
from fencerow.core.model.submission import SubmitResult
from fencerow.core.store import store
from fencerow.db.run import Operation
from fencerow.errors import JobNotFound, KeyConflict
from fencerow.retention.purging import purge_keys
from fencerow_proof.arena.actor import Abandoned, Script, doing, later, transaction
from fencerow_proof.arena.race import Scenario, Story
from tests.kit.asked import submit_keyed
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import (
    FIRST,
    JOB,
    OTHER_JOB,
    THIRD_JOB,
    acting,
    claim,
    key_claim,
    keyed,
    new_job,
    register,
    revive,
    state,
    succeed,
    with_jobs,
    working,
)  # fmt: skip


def one_worker() -> Script:
    yield register(FIRST)


def one_answer(story: Story) -> None:
    answers = [result for result in story.results.values() if isinstance(result, list)]
    ids = {answer[0].id for answer in answers}

    assert len(answers) == len(story.results), story.results
    assert len(ids) == 1, "one key, two jobs"
    assert sum(not answer[0].replay for answer in answers) == 1
    assert [job_id for job_id in (JOB, OTHER_JOB, THIRD_JOB) if state(story, job_id)] == list(ids)


same_key = Scenario(
    "submit_keyed × submit_keyed",
    one_worker,
    [doing("first", keyed(JOB)), doing("second", keyed(OTHER_JOB))],
    one_answer,
)


@named(13)
def test_one_key_makes_one_job(race: Race) -> None:
    race(same_key)


@in_modes("plain", "held")
def test_the_loser_breaks_without_on_conflict(race: Race) -> None:
    race.turns_red(same_key, Cut("reserve_keys", ("ON CONFLICT (scope, key) DO NOTHING\n", "")))


@in_modes("plain", "held")
@named(13)
def test_the_loser_gets_no_answer_from_the_reserving_statement_alone(race: Race) -> None:
    """One statement that inserts or looks: its snapshot is older than the winner's commit, and it sees neither."""
    race.turns_red(
        same_key,
        Cut("read_keys", ("JOIN fencerow.keys AS owned ON", "JOIN fencerow.keys AS owned ON false AND")),
    )


@named(13)
def test_two_jobs_are_made_when_the_key_is_not_reserved(race: Race) -> None:
    returns = "RETURNING scope, key"
    race.turns_red(
        same_key,
        Cut(
            "reserve_keys",
            ("DO NOTHING", "DO UPDATE SET job_id = EXCLUDED.job_id"),
            (f"DO NOTHING\n{returns}", f"DO UPDATE SET job_id = excluded.job_id\n{returns}"),
        ),
    )


def other_payload(story: Story) -> None:
    refused = [result for result in story.results.values() if isinstance(result, KeyConflict)]
    assert len(refused) == 1
    made = [job_id for job_id in (JOB, OTHER_JOB) if state(story, job_id)]
    assert made == [refused[0].job_id]


def test_the_same_key_with_another_payload_is_refused(race: Race) -> None:
    race(
        Scenario(
            "submit_keyed × submit_keyed with another payload",
            one_worker,
            [doing("first", keyed(JOB)), doing("second", keyed(OTHER_JOB, "other"))],
            other_payload,
        )
    )


# The winner's transaction is rolled back after all.


def aborted() -> Any:
    yield from keyed(JOB).steps()
    yield from store.clock().steps()
    raise Abandoned


def the_loser_inserts(story: Story) -> None:
    assert isinstance(story.results["winner"], Abandoned)
    assert [(made.id, made.replay) for made in story.results["loser"]] == [(OTHER_JOB, False)]
    assert (state(story, JOB), state(story, OTHER_JOB)) == (None, "queued")


winner_aborts = Scenario(
    "submit_keyed × submit_keyed whose winner aborts",
    one_worker,
    [doing("winner", transaction("aborted submit", aborted)), doing("loser", keyed(OTHER_JOB))],
    the_loser_inserts,
)


@named(13)
def test_the_loser_inserts_when_the_winner_aborts(race: Race) -> None:
    race(winner_aborts)


# A key whose lifetime is over.


def expired_key() -> Script:
    yield from one_worker()
    yield keyed(JOB)
    yield claim(FIRST)
    yield succeed(FIRST)
    yield later(61.0)


def one_new_job(story: Story) -> None:
    first, second = story.results["first"], story.results["second"]
    assert first[0].id == second[0].id in (OTHER_JOB, THIRD_JOB)
    assert [first[0].replay, second[0].replay].count(True) == 1


expired = Scenario(
    "submit_keyed × purge_keys × submit_keyed, the key expired",
    expired_key,
    [
        doing("first", keyed(OTHER_JOB)),
        doing("purge", purge_keys(limit=10)),
        doing("second", keyed(THIRD_JOB)),
    ],
    one_new_job,
)
expired_two = Scenario(
    "submit_keyed × submit_keyed, the key expired",
    expired_key,
    [doing("first", keyed(OTHER_JOB)), doing("second", keyed(THIRD_JOB))],
    one_new_job,
)


@pytest.mark.parametrize("scenario", [expired, expired_two], ids=lambda scenario: scenario.name)
@named(17)
def test_an_expired_key_makes_one_new_job(race: Race, scenario: Scenario) -> None:
    race(scenario)


@named(17)
def test_a_new_key_is_dropped_without_the_look_at_its_expiry(race: Race) -> None:
    race.turns_red(
        expired_two,
        Cut(
            "drop_expired_keys",
            ("  AND owned.expires_at <= (SELECT fencerow.now())\n", ""),
            ("  AND expires_at <= fencerow.now()\n", ""),
        ),
        Cut(
            "read_keys",
            (
                "owned.expires_at IS NOT NULL AND owned.expires_at <= (SELECT fencerow.now()) AS expired",
                "true",
            ),
            ("owned.expires_at IS NOT NULL AND owned.expires_at <= fencerow.now() AS expired", "1"),
        ),
    )


def one_owner(story: Story) -> None:
    revived, submitted = story.results["revive"], story.results["submit"]
    assert not isinstance(submitted, Exception), submitted
    if isinstance(revived, KeyConflict):
        assert (submitted[0].id, submitted[0].replay) == (OTHER_JOB, False)
    else:
        assert not isinstance(revived, Exception), revived
        assert (submitted[0].id, submitted[0].replay) == (JOB, True), "two live jobs of one key"


revive_submit = Scenario(
    "revive × submit_keyed, the key expired",
    expired_key,
    [doing("revive", revive()), doing("submit", keyed(OTHER_JOB))],
    one_owner,
)


@named(17)
def test_a_key_goes_to_the_revived_or_to_the_new_job(race: Race) -> None:
    race(revive_submit)


@named(17)
def test_both_have_it_when_revive_does_not_keep_its_key(race: Race) -> None:
    race.turns_red(
        revive_submit,
        Cut(
            "keep_key",
            ("SET expires_at = NULL", "SET expires_at = expires_at"),
            ("expires_at = NULL", "expires_at = expires_at"),
        ),
    )


# A key whose lifetime is over, and an id of the caller's own that had it and has ended.


def own_again() -> Operation[list[SubmitResult]]:
    return submit_keyed([new_job(JOB, scope="s", key="k")], [key_claim(JOB)], own={JOB})


def no_key_for_ever(story: Story) -> None:
    """Who has a key that does not expire has not ended, and will start its lifetime."""
    owner = story.run(store.key_owner("s", "k"))
    assert owner is None or state(story, owner.job_id) == "queued"


def the_other_is_new(story: Story) -> None:
    assert [(made.id, made.replay) for made in story.results["other"]] == [(OTHER_JOB, False)]
    assert [(made.id, made.replay) for made in story.results["own"]] in ([(JOB, False)], [(OTHER_JOB, True)])
    assert (state(story, JOB), state(story, OTHER_JOB)) == ("succeeded", "queued")
    no_key_for_ever(story)


own_other = Scenario(
    "submit_keyed under an own id that has ended × submit_keyed, the key expired",
    expired_key,
    [doing("own", own_again()), doing("other", keyed(OTHER_JOB))],
    the_other_is_new,
)
own_revive = Scenario(
    "submit_keyed under an own id that has ended × revive × purge_keys, the key expired",
    expired_key,
    [doing("own", own_again()), doing("someone", revive()), doing("purge", purge_keys(limit=10))],
    no_key_for_ever,
)


@named(17)
@pytest.mark.parametrize("scenario", [own_other, own_revive], ids=["other", "revive"])
def test_a_key_is_not_taken_for_a_job_that_has_ended(race: Race, scenario: Scenario) -> None:
    race(scenario)


@named(17)
def test_it_is_when_it_is_not_given_back(race: Race) -> None:
    race.turns_red(
        own_other,
        Cut(
            "give_keys_back",
            ("  AND owned.expires_at IS NULL\n", "  AND false\n"),
            ("  AND expires_at IS NULL\n", "  AND false\n"),
        ),
    )


# Inside a user's transaction.


def user_submits(commit: bool) -> Operation[Any]:
    def steps() -> Any:
        yield from store.submit([new_job()]).steps()
        yield from store.clock().steps()
        if not commit:
            raise Abandoned

    return transaction("user's transaction", steps)


def twice() -> Script:
    claimed: list[str] = []
    for _ in range(2):
        claimed += [job.id for job in (yield claim(FIRST))]
    return claimed


def seen_when_committed(story: Story) -> None:
    claimed = story.results["worker"]
    if isinstance(story.results["user"], Abandoned):
        assert claimed == []
        assert state(story) is None
    else:
        assert state(story) == ("running" if claimed else "queued")
    assert not story.waited


@pytest.mark.parametrize("commit", [True, False], ids=["committed", "rolled back"])
def test_a_job_of_an_open_transaction_is_not_claimed(race: Race, commit: bool) -> None:
    race(
        Scenario(
            f"submit in a user's transaction ({'committed' if commit else 'rolled back'}) × claim",
            one_worker,
            [doing("user", user_submits(commit)), acting("worker", twice)],
            seen_when_committed,
        )
    )


# A submit whose reply was lost is repeated, while the job is claimed and ends.


def losing_the_reply() -> Script:
    yield store.submit([new_job()])
    return (yield store.resubmit([new_job()]))


def ran_once(story: Story) -> None:
    claimed, moved = story.results["worker"]
    assert story.results["client"] == []
    assert state(story) == ("succeeded" if moved else "queued")
    assert claimed == moved


lost_submit = Scenario(
    "lost submit × claim × succeed × resubmit",
    one_worker,
    [acting("client", losing_the_reply), working("worker", FIRST)],
    ran_once,
)


@named(15)
def test_a_repeated_submit_never_runs_a_finished_job_again(race: Race) -> None:
    race(lost_submit)


@named(15)
def test_it_does_when_nothing_is_withdrawn(race: Race) -> None:
    race.turns_red(
        lost_submit, Cut("withdraw", ("job.attempt = 0", "job.attempt < 0"), ("attempt = 0", "attempt < 0"))
    )


@in_modes("held")
@named(15)
def test_it_does_when_the_insert_itself_looks_among_the_finished(race: Race) -> None:
    """The one statement that would do looks with a snapshot older than the move; a second one is needed."""
    look = (
        "WHERE NOT EXISTS (SELECT 1 FROM fencerow.finished_jobs AS finished "
        "WHERE finished.id = CAST(job.value ->> 0 AS uuid))"
    )
    race.turns_red(
        lost_submit,
        Cut("resubmit", ("ON CONFLICT (id) DO NOTHING", f"{look}\nON CONFLICT (id) DO NOTHING")),
        Cut("withdraw", ("job.attempt = 0", "job.attempt < 0")),
    )


# Many at once, by COPY.

MANY = [new_job(), new_job(OTHER_JOB)]


def losing_the_reply_to_a_copy() -> Script:
    yield store.submit_by_copy(MANY)
    return (yield store.resubmit(MANY))


def ran_once_each(story: Story) -> None:
    claimed, moved = story.results["worker"]
    assert story.results["client"] == []
    assert [state(story, job_id) for job_id in (JOB, OTHER_JOB)] == ["succeeded" if moved else "queued"] * 2
    assert claimed == moved


lost_copy = Scenario(
    "lost submit_by_copy × claim × succeed × resubmit",
    one_worker,
    [acting("client", losing_the_reply_to_a_copy), working("worker", FIRST, limit=2)],
    ran_once_each,
)


@in_modes("plain", "held")
def test_a_repeated_copy_never_runs_a_finished_job_again(race: Race) -> None:
    race(lost_copy)


@in_modes("plain", "held")
def test_it_does_when_nothing_of_a_copy_is_withdrawn(race: Race) -> None:
    race.turns_red(lost_copy, Cut("withdraw", ("job.attempt = 0", "job.attempt < 0")))


def copying_unheard() -> Script:
    """The client gave this connection up, and the server goes on with what it was sent."""
    try:
        return (yield store.submit_by_copy(MANY))
    except UniqueViolation:
        return []


def once_each(story: Story) -> None:
    made = [*story.results["unheard"], *story.results["client"]]
    assert sorted(made) == [JOB, OTHER_JOB]
    assert [state(story, job_id) for job_id in (JOB, OTHER_JOB)] == ["queued"] * 2


copy_resubmit = Scenario(
    "submit_by_copy × resubmit",
    one_worker,
    [acting("unheard", copying_unheard), doing("client", store.resubmit(MANY))],
    once_each,
)


@in_modes("plain", "held")
def test_a_copy_and_its_repeat_make_each_job_once(race: Race) -> None:
    race(copy_resubmit)


@in_modes("plain", "held")
def test_the_repeat_fails_when_it_does_not_leave_live_ids_alone(race: Race) -> None:
    race.turns_red(copy_resubmit, Cut("resubmit", ("ON CONFLICT (id) DO NOTHING\n", "")))


# The client gave up its first submit and repeated it, and the first is delivered all the same: late.

REFUSED = (UniqueViolation, sqlite3.IntegrityError)


def unheard(first: Operation[list[str]]) -> Any:
    def script() -> Script:
        try:
            return (yield first)
        except REFUSED:
            return []

    return script


def made_once(story: Story) -> None:
    claimed, moved = story.results["worker"]
    assert [*story.results["unheard"], *story.results["client"]].count(JOB) == 1, "it was made twice"
    assert claimed == moved
    assert state(story) == ("succeeded" if JOB in moved else "queued")


def delivered_late(name: str, first: Operation[list[str]], jobs: list[NewJob]) -> Scenario:
    return Scenario(
        f"{name} delivered late × resubmit × claim × succeed",
        one_worker,
        [
            acting("unheard", unheard(first)),
            doing("client", store.resubmit(jobs)),
            working("worker", FIRST, limit=2),
        ],
        made_once,
    )


late_single = delivered_late("submit", store.submit([new_job()]), [new_job()])
late_group = delivered_late("submit of several", store.submit(MANY), MANY)
late_copy = delivered_late("submit_by_copy", store.submit_by_copy(MANY), MANY)


@named(15)
@pytest.mark.parametrize("scenario", [late_single, late_group], ids=["one", "several"])
def test_a_submit_that_comes_after_its_repeat_makes_no_second_job(race: Race, scenario: Scenario) -> None:
    race(scenario)


@in_modes("plain", "held")
def test_nor_does_a_late_copy(race: Race) -> None:
    race(late_copy)


@named(15)
@pytest.mark.parametrize("scenario", [late_single, late_group], ids=["one", "several"])
def test_it_does_when_the_repeat_leaves_nothing_to_find(race: Race, scenario: Scenario) -> None:
    race.turns_red(
        scenario,
        Cut(
            "withdraw",
            (
                "unnest(CAST(:repeated AS uuid[])) AS again (id)",
                "unnest(CAST(:repeated AS uuid[])) AS again (id) LIMIT 0",
            ),
            ("json_each(:repeated) AS again\nWHERE true", "json_each(:repeated) AS again\nWHERE false"),
        ),
    )


@in_modes("plain", "held")
def test_a_late_copy_does_when_nothing_looks(race: Race) -> None:
    race.turns_red(
        late_copy,
        Cut("refuse_repeated", ("fencerow.refuse_repeated(CAST(:ids AS uuid[]))", "CAST(:ids AS uuid[])")),
    )


@in_modes("held")
@named(15)
@pytest.mark.parametrize("scenario", [late_single, late_group], ids=["one", "several"])
def test_it_does_when_the_repeat_does_not_say_that_one_must_look(race: Race, scenario: Scenario) -> None:
    race.turns_red(scenario, Cut("withdraw", ("+ 2 * 86400", "- 1")))


@in_modes("held")
@named(15)
def test_it_does_when_the_insert_itself_looks_at_what_was_repeated(race: Race) -> None:
    """A look with the statement's own snapshot, which may be older than the repeat; the function takes a newer one."""
    look = "WHERE NOT EXISTS (SELECT 1 FROM fencerow.repeated_ids AS repeated WHERE repeated.id = CAST(:id AS uuid))"
    race.turns_red(
        late_single,
        Cut("submit_one", ("RETURNING CASE WHEN", f"{look} RETURNING CASE WHEN")),
        Cut("submit_one", ("ELSE fencerow.refuse_repeated(ARRAY[id]) END", "ELSE true END")),
    )


def claimed_when_committed(story: Story) -> None:
    claimed = story.results["worker"]
    assert claimed in ([], [JOB, OTHER_JOB]), "some of a COPY were seen before the others"
    expected = "running" if claimed else "queued"
    assert [state(story, job_id) for job_id in (JOB, OTHER_JOB)] == [expected] * 2


def claim_both() -> Script:
    claimed: list[str] = []
    for _ in range(2):
        claimed += [job.id for job in (yield claim(FIRST, 2))]
    return sorted(claimed)


@in_modes("plain", "held")
def test_a_copy_is_claimed_whole_or_not_at_all(race: Race) -> None:
    race(
        Scenario(
            "submit_by_copy × claim",
            one_worker,
            [doing("client", store.submit_by_copy(MANY)), acting("worker", claim_both)],
            claimed_when_committed,
        )
    )


def resubmit_revive(story: Story) -> None:
    assert story.results["client"] == []
    assert not isinstance(story.results["someone"], JobNotFound)
    assert state(story) == "queued"


def finished() -> Script:
    yield from with_jobs()()
    yield claim(FIRST)
    yield succeed(FIRST)


@named(15)
def test_a_repeated_submit_and_a_revive_make_one_job(race: Race) -> None:
    race(
        Scenario(
            "resubmit × revive",
            finished,
            [doing("client", store.resubmit([new_job()])), doing("someone", revive())],
            resubmit_revive,
        )
    )
