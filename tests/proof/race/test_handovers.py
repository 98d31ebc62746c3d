"""Races of handovers: each end is taken in its turn, confirmed once, and lost by nobody."""

from __future__ import annotations

import itertools
from typing import Any

from fencerow.core.model.state import FINAL, State
from fencerow.core.store import store
from fencerow.db.run import Operation
from fencerow.handovers.handovers import Handover, TakeOf, confirm, mend, purge, read, take
from fencerow.handovers.lines import lining_up_again
from fencerow.handovers.terms import HandoverTerms
from fencerow_proof.arena.actor import Actor, Script, doing, later, transaction
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import (
    FIRST,
    JOB,
    OTHER_JOB,
    cancel,
    claim,
    fail,
    new_job,
    register,
    revive,
    state,
    succeed,
    uid,
)  # fmt: skip

LEASE_S = 60.0
HOLD_S = 5.0
TERMS = HandoverTerms("bot", "k", HOLD_S).terms
BOTH = (JOB, OTHER_JOB)

_takes = itertools.count(1000)


def of_the_line(job_id: str = JOB) -> Any:
    return new_job(job_id, terms=TERMS)


def taking(limit: int = 2) -> Operation[list[Handover]]:
    return take(TakeOf("bot", uid(next(_takes)), LEASE_S), limit=limit)


def confirming(taken: Handover) -> Operation[bool]:
    return confirm(taken.job_id, receiver="bot", actor=None, holder=taken.holder, token=taken.token)


def by_id(job_id: str = JOB) -> Operation[bool]:
    return confirm(job_id, receiver="bot", actor=None)


def receiver(takes: int) -> Any:
    """Takes so often, and confirms what it gets; returns the ids in their order, and whether each was confirmed."""

    def script(_: Any) -> Script:
        got: list[tuple[str, bool]] = []
        for _round in range(takes):
            for each in (yield taking()):
                confirmed = yield confirming(each)
                got.append((each.job_id, confirmed))
        return got

    return script


# Setups.


def running() -> Script:
    """Both run, in one line."""
    yield register(FIRST)
    for each in BOTH:
        yield store.submit_gated([of_the_line(each)])
    yield claim(FIRST, limit=2)


def ended() -> Script:
    yield from running()
    for each in BOTH:
        yield succeed(FIRST, 1, each)


def second_ended() -> Script:
    yield from running()
    yield succeed(FIRST, 1, OTHER_JOB)


def taken() -> Script:
    """The first is taken; returns the take."""
    yield from ended()
    (first,) = yield taking()
    return first


def taken_under(holder: str) -> Any:
    """The first is taken by this one."""

    def setup() -> Script:
        yield from ended()
        yield take(TakeOf("bot", holder, LEASE_S), limit=1)

    return setup


def confirmed() -> Script:
    """The first is confirmed, and retention has removed its job."""
    yield from taken()
    yield by_id()
    yield store.delete([JOB])


def taken_long_ago() -> Script:
    first = yield from taken()
    yield later(LEASE_S + 1)
    return first


def taken_of_the_gone() -> Script:
    """Taken, and retention has removed the job."""
    first = yield from taken()
    yield store.delete([JOB])
    return first


def failed_and_taken() -> Script:
    yield register(FIRST)
    yield store.submit_gated([of_the_line()])
    yield claim(FIRST)
    yield fail(FIRST)
    (first,) = yield taking()
    return first


def missed() -> Script:
    """It failed in a worker that knows no handovers: its end stands in no line."""
    yield register(FIRST)
    yield store.submit([new_job()])
    yield claim(FIRST)
    yield fail(FIRST)
    yield transaction("line up", lambda: lining_up_again([of_the_line()]))


# What is looked at.


def handover(story: Story, job_id: str) -> Handover:
    found = story.run(read(job_id))
    assert found is not None, f"the handover of {job_id} is nowhere"
    return found[0]


def drained(story: Story) -> list[str]:
    """Take and confirm all that can be had, after every lease and hold."""
    got: list[str] = []
    for _ in range(9):
        for each in story.run(taking()):
            assert story.run(confirming(each))
            got.append(each.job_id)
        story.run(later(LEASE_S + HOLD_S))
    return got


def each_once_in_order(story: Story, *names: str) -> None:
    """Both are confirmed once, and the second not taken before the first was, unless its hold was over."""
    confirmed = [job_id for name in names for job_id, done in story.results[name] if done] + drained(story)
    assert sorted(confirmed) == sorted(BOTH), f"confirmed: {confirmed}"
    first, second = (handover(story, each) for each in BOTH)
    assert first.confirmed_at_us is not None and second.taken_at_us is not None
    assert second.held_until_us is not None
    in_order = first.confirmed_at_us <= second.taken_at_us
    assert in_order or second.held_until_us <= second.taken_at_us, "the second was taken before the first"


# Takes.

two_takers = Scenario(
    "take_handovers × take_handovers, each confirms",
    ended,
    [Actor("one", receiver(2)), Actor("other", receiver(2))],
    lambda story: each_is_one_s(story),
)


def each_is_one_s(story: Story) -> None:
    each_once_in_order(story, "one", "other")
    assert [handover(story, each).token for each in BOTH] == [1, 1], "one was taken twice"


NOBODY_HAS_IT = "(handover.free_at IS NULL"
NO_LEASE = Cut("take_handovers", (NOBODY_HAS_IT, "(true"), (NOBODY_HAS_IT, "(true"))


@named(72)
def test_of_two_takers_each_end_is_one_s(race: Race) -> None:
    race(two_takers)


@named(72)
def test_both_have_it_without_a_lease(race: Race) -> None:
    race.turns_red(two_takers, NO_LEASE)


# Confirmations.


def one_confirmed(story: Story) -> None:
    answers = [story.results["by its take"], story.results["by its id"]]
    assert sorted(answers) == [False, True], f"answers: {answers}"


confirm_confirm_purge = Scenario(
    "confirm_handover × confirm_handover × purge_handovers",
    taken_of_the_gone,
    [
        Actor("by its take", lambda first: _asked(confirming(first))),
        doing("by its id", by_id()),
        doing("purge", purge(0, age_s=0.0, limit=9)),
    ],
    one_confirmed,
)


def _asked(operation: Operation[Any]) -> Script:
    return (yield operation)


TWICE = Cut(
    "confirm_handover",
    ("AND num_nulls(handover.confirmed_at) = 1", ""),
    ("AND handover.confirmed_at IS NULL", ""),
)
UNCONFIRMED_TOO = Cut(
    "purge_handovers",
    (
        "AND handover.confirmed_at < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))",
        "AND CAST(:age_s AS double precision) = 0",
    ),
    ("AND handover.confirmed_at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)", "AND :age_s = 0"),
)


@named(72)
def test_one_confirmation_counts_and_no_purge_comes_before_it(race: Race) -> None:
    race(confirm_confirm_purge)


@named(72)
def test_both_count_without_the_guard(race: Race) -> None:
    race.turns_red(confirm_confirm_purge, TWICE)


@named(72)
def test_an_end_is_lost_to_a_purge_that_does_not_ask_for_a_confirmation(race: Race) -> None:
    race.turns_red(confirm_confirm_purge, UNCONFIRMED_TOO)


def the_last_take_counts(story: Story) -> None:
    """The zombie's confirmation counts while nobody has taken its end since."""
    others = [done for job_id, done in story.results["second"] if job_id == JOB]
    assert [story.results["zombie"], *others].count(True) == 1
    assert not others or others == [not story.results["zombie"]]
    assert handover(story, JOB).token == 1 + len(others)
    assert story.results["zombie"] == (not others or not others[0])
    if others:
        assert others == [True], "a late confirmation won over a newer take"


zombie = Scenario(
    "confirm_handover of a lost lease × take_handovers × confirm_handover",
    taken_long_ago,
    [Actor("zombie", lambda first: _asked(confirming(first))), Actor("second", receiver(1))],
    the_last_take_counts,
)
NO_TOKEN = Cut(
    "confirm_handover",
    (
        "(handover.holder = CAST(:holder AS uuid) AND handover.token = CAST(:token AS bigint))",
        "CAST(:token AS bigint) > 0",
    ),
    ("(handover.holder = :holder AND handover.token = :token)", ":token > 0"),
)


@named(72)
def test_a_late_confirmation_changes_nothing_once_somebody_else_has_it(race: Race) -> None:
    race(zombie)


@named(72)
def test_a_late_confirmation_wins_without_its_token(race: Race) -> None:
    race.turns_red(zombie, NO_TOKEN)


# The end of a hold.

late_hold = Scenario(
    "succeed of the first × the end of the second one's hold × take_handovers",
    second_ended,
    [
        doing("worker", succeed(FIRST)),
        doing("clock", later(HOLD_S + 1)),
        Actor("bot", receiver(2)),
    ],
    lambda story: each_once_in_order(story, "bot"),
)
NO_HOLD = Cut(
    "take_handovers",
    ("AND handover.held_until <= (SELECT fencerow.now())", ""),
    ("AND handover.held_until <= fencerow.now()", ""),
)


@named(73)
def test_a_late_end_is_handed_over_once_and_nobody_goes_first_before_the_hold_is_over(race: Race) -> None:
    race(late_hold)


@named(73)
def test_the_second_goes_first_without_the_hold(race: Race) -> None:
    race.turns_red(late_hold, NO_HOLD)


# Ends of other kinds.


def as_it_ended(story: Story) -> None:
    each_once_in_order(story, "bot")
    assert state(story, JOB) in FINAL
    assert handover(story, JOB).state == state(story, JOB)


def queued_before() -> Script:
    """The first is queued, the second has ended."""
    yield register(FIRST)
    for each in BOTH:
        yield store.submit_gated([of_the_line(each)])
    yield claim(FIRST, limit=2)
    yield succeed(FIRST, 1, OTHER_JOB)
    yield store.requeue([store.Requeue(id=JOB, attempt=1, kind="released")], holder=FIRST)


def working(_: Any) -> Script:
    for job in (yield claim(FIRST)):
        yield succeed(FIRST, job.attempt, job.id)


cancel_end_take = Scenario(
    "cancel × claim × succeed × take_handovers",
    queued_before,
    [doing("person", cancel()), Actor("worker", working), Actor("bot", receiver(2))],
    lambda story: _ended_somehow(story),
)


def _ended_somehow(story: Story) -> None:
    if state(story, JOB) not in FINAL:  # a cancel was asked of the running one: its worker stops it
        attempt = story.run(store.read_fences([JOB]))[JOB].attempt
        story.run(store.stop([store.Stop(JOB, attempt, None)], holder=FIRST))
    as_it_ended(story)


NOT_WRITTEN = Cut(
    "archive",
    ("handover.state IS NULL", "handover.state IS NULL AND false"),
    ("handover.job_id = ended.id\n  AND handover.state IS NULL", "false"),
)


@named(74)
def test_a_cancelled_job_frees_those_behind_it_whoever_ends_it_first(race: Race) -> None:
    race(cancel_end_take)


@named(74)
def test_the_end_of_a_cancelled_job_is_lost_if_its_move_does_not_write_it(race: Race) -> None:
    race.turns_red(cancel_end_take, NOT_WRITTEN)


# Revivals.


def the_new_end_comes(story: Story) -> None:
    """The job is live again: its end is to come, whoever confirmed the first one."""
    assert state(story, JOB) == State.QUEUED
    (again,) = story.run(claim(FIRST))
    assert story.run(succeed(FIRST, again.attempt))
    last = story.run(taking())
    found = [(each.job_id, each.state, each.attempt) for each in last]
    assert found == [(JOB, State.SUCCEEDED, again.attempt)], f"to be had: {found}"
    assert story.run(confirming(last[0]))


revive_confirm = Scenario(
    "revive × confirm_handover × take_handovers",
    failed_and_taken,
    [
        doing("person", revive()),
        Actor("bot", lambda first: _asked(confirming(first))),
        doing("other", taking()),
    ],
    the_new_end_comes,
)
revive_mend = Scenario(
    "revive × write_missed",
    missed,
    [doing("person", revive()), doing("worker", mend(0, limit=9))],
    the_new_end_comes,
)
NO_LOCK = Cut("lock_missed", ("\nFOR UPDATE SKIP LOCKED", ""))
STAYS = Cut(
    "revive",
    (
        "SET state = NULL, attempt = NULL, result = NULL, error = NULL, ended_at = NULL, held_until = NULL,",
        "SET",
    ),
    (
        "SET state = NULL, attempt = NULL, result = NULL, error = NULL, ended_at = NULL, held_until = NULL,",
        "SET",
    ),
)


@named(75)
def test_a_revived_job_is_handed_over_with_its_new_end(race: Race) -> None:
    race(revive_confirm)
    race(revive_mend)


@named(75)
def test_the_old_end_stands_when_a_revive_leaves_it(race: Race) -> None:
    race.turns_red(revive_confirm, STAYS)


@named(75)
@in_modes("plain", "held")
def test_the_old_end_is_written_for_a_live_job_by_a_look_that_locks_nothing(race: Race) -> None:
    race.turns_red(revive_mend, NO_LOCK)
