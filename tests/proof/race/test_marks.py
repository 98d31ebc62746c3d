"""Where one side leaves a mark and another looks: an end and whoever waits for it, an attempt and what it writes."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.core.store import store
from fencerow.operators import looking
from fencerow_proof.arena.actor import Script, doing, later
from fencerow_proof.arena.race import Scenario, Story
from tests.kit.asked import submit_keyed
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import (
    FIRST,
    JOB,
    LEASE_S,
    OTHER_JOB,
    SECOND,
    TRIES,
    acting,
    cancel,
    claim,
    die,
    fail,
    key_claim,
    keyed,
    new_job,
    reclaim,
    register,
    state,
    stop,
    succeed,
    with_running,
    working,
)  # fmt: skip

# Somebody waits for a job while it ends: the end of what was marked is announced, and what could not be marked (its row
# was locked, or it has ended) is looked at afterwards, and tried again.

MARK = store.mark_awaited([JOB])
LOOK = store.outcomes([JOB])


def waits() -> Script:
    for _ in range(TRIES):
        if (yield LOOK):
            return "seen"
        if JOB in (yield MARK):
            return "noted"
        if (yield LOOK):
            return "seen"
    return "locked"  # it tries on; an explorer must come to an end


def marks_too_late() -> Script:
    """Who takes a mark that was not made for one loses an end that falls between the look and the mark."""
    if (yield LOOK):
        return "seen"
    yield MARK
    return "noted"


def no_end_is_missed(story: Story) -> None:
    announced = any(each.awaited for each in story.results["worker"])
    if state(story) not in ("queued", "running"):
        assert story.results["waiter"] != "noted" or announced, "nobody will tell the waiter"


def asked_to_stop() -> Script:
    yield from with_running()()
    yield cancel()


ENDS: dict[str, tuple[Any, Any]] = {
    "succeed": (with_running(), succeed(FIRST)),
    "fail": (with_running(), fail(FIRST)),
    "stop": (asked_to_stop, stop(FIRST)),
}


def waiting(name: str, script: Any) -> Scenario:
    setup, end = ENDS[name]
    return Scenario(
        f"mark_awaited × {name}", setup, [acting("waiter", script), doing("worker", end)], no_end_is_missed
    )


@pytest.mark.parametrize("name", ENDS)
@named(13)
def test_an_end_is_seen_or_announced(race: Race, name: str) -> None:
    race(waiting(name, waits))


@pytest.mark.parametrize("name", ENDS)
@named(13)
def test_it_is_missed_by_one_who_marks_after_the_look(race: Race, name: str) -> None:
    told = race.breaks(waiting(name, marks_too_late), "the mark comes after the look")

    assert "nobody will tell the waiter" in str(told)


def mark_beside_an_end() -> Scenario:
    def unhindered(story: Story) -> None:
        assert "waiter" not in story.waited

    return Scenario(
        "mark_awaited × fail, without waiting",
        with_running(),
        [acting("waiter", waits), doing("worker", fail(FIRST))],
        unhindered,
    )


@in_modes("plain", "held")
def test_a_waiter_never_waits_for_a_lock(race: Race) -> None:
    race(mark_beside_an_end())


@in_modes("plain", "held")
def test_a_waiter_that_skips_nothing_waits_for_a_lock(race: Race) -> None:
    race.turns_red(mark_beside_an_end(), Cut("mark_awaited", ("        FOR UPDATE SKIP LOCKED\n", "")))


# A submit under a key is repeated after a lost reply, while the job that it made runs and stamps the key's end.


def keyed_one() -> Script:
    yield register(FIRST)
    yield keyed(JOB)


def one_job_and_one_run(story: Story) -> None:
    (answer,) = story.results["again"]
    assert answer.id == JOB
    record = story.run(store.read([JOB]))[JOB]
    assert record.attempt == 1, "a finished job runs again"
    assert state(story) == "succeeded"


repeated_key = Scenario(
    "repeated submit_keyed × claim × succeed",
    keyed_one,
    [doing("again", keyed(JOB)), working("worker", FIRST)],
    one_job_and_one_run,
)


@named(15)
def test_a_repeated_keyed_submit_never_runs_a_finished_job_again(race: Race) -> None:
    race(repeated_key)


@named(15)
def test_it_does_when_nothing_is_withdrawn(race: Race) -> None:
    race.turns_red(
        repeated_key,
        Cut("withdraw", ("job.attempt = 0", "job.attempt < 0"), ("attempt = 0", "attempt < 0")),
        # Between whole transactions the key tells the end already.
        Cut("read_keys", None, ("owned.expires_at IS NOT NULL AS ended", "0 AS ended")),
    )


# Somebody else submits under the key whose job ends at this moment, with a lifetime that is over at once.


def brief_key() -> Script:
    yield register(FIRST)
    yield submit_keyed([new_job(JOB, scope="s", key="k")], [key_claim(JOB, lifetime_s=0.0)])
    yield claim(FIRST)


def the_old_or_a_new_job(story: Story) -> None:
    (answer,) = story.results["next"]
    assert answer.id in (JOB, OTHER_JOB)
    assert (state(story, OTHER_JOB) == "queued") == (answer.id == OTHER_JOB)
    owner = story.run(store.key_owner("s", "k"))
    assert owner is not None
    assert owner.job_id == answer.id
    assert owner.expired == (answer.id == JOB), (
        "the key's end was stamped on another job's key, or not at all"
    )


stamped = Scenario(
    "submit_keyed × the stamp of the key's end",
    brief_key,
    [doing("next", keyed(OTHER_JOB)), doing("worker", succeed(FIRST))],
    the_old_or_a_new_job,
)


@named(13, 17)
def test_a_key_that_ends_goes_to_the_next_or_stays_with_the_first(race: Race) -> None:
    race(stamped)


@named(13, 17)
def test_a_key_never_ends_without_the_stamp(race: Race) -> None:
    race.turns_red(
        stamped,
        Cut(
            "succeed",
            ("owned.job_id = ended.id", "false"),
            ("SET expires_at = fencerow.now()", "SET expires_at = expires_at"),
        ),
    )


# What an attempt writes while it is taken over.


def dead_but_not_taken() -> Script:
    yield from with_running()()
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)
    yield die(SECOND)


def taking_over() -> Script:
    yield reclaim(FIRST)
    claimed = yield store.claim_suspect("mail", holder=SECOND, names=["send"], margin_s=10.0)
    for job in claimed:
        yield store.progress(JOB, holder=SECOND, attempt=job.attempt, percent=1.0, note="new")
        yield store.log(JOB, holder=SECOND, attempt=job.attempt, level="info", message="new")
    return bool(claimed)


def still_writing() -> Script:
    yield store.log(JOB, holder=FIRST, attempt=1, level="info", message="old")
    yield store.progress(JOB, holder=FIRST, attempt=1, percent=99.0, note="old")


def no_word_of_the_old_after_the_new(story: Story) -> None:
    if not story.results["second"]:
        return
    messages = [line.message for line in story.run(looking.logs(JOB))]
    assert messages in (["new"], ["old", "new"]), f"a stale attempt wrote after a newer claim: {messages}"
    assert story.run(store.read([JOB]))[JOB].progress_note == "new"


taken_over = Scenario(
    "log and progress × reclaim × claim_suspect",
    dead_but_not_taken,
    [acting("first", still_writing), acting("second", taking_over)],
    no_word_of_the_old_after_the_new,
)


@named(8)
def test_a_stale_attempt_writes_nothing_after_a_newer_claim(race: Race) -> None:
    race(taken_over)


@in_modes("held")
@named(8)
def test_it_does_when_it_does_not_lock_the_job(race: Race) -> None:
    race.turns_red(taken_over, Cut("log", ("    FOR SHARE\n", "")))
