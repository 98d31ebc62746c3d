"""Races of people who answer: one answer counts, whichever address it comes by."""

from __future__ import annotations

import pytest

from fencerow.core.model.state import State
from fencerow.steps import memory
from fencerow.steps.approvals import Ticket, answer_approval, make_approval
from fencerow.steps.errors import ApprovalOver
from fencerow.steps.memory import Fencing, Waiting
from fencerow.steps.run import TIMED_OUT
from fencerow.steps.signals import signals_of
from fencerow_proof.arena.actor import Script, doing
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import FIRST, JOB, acting, cancel, state, suspend, uid, with_running

TICKETS = [Ticket(uid(801), "a" * 64), Ticket(uid(802), "b" * 64)]


def asked_twice() -> Script:
    yield from with_running()()
    for ticket in TICKETS:
        yield make_approval(ticket.id, JOB, "approved", "Pay?", ticket.digest, expires_s=60.0, actor=None)


def answering(ticket: Ticket, *, yes: bool) -> Script:
    try:
        yield answer_approval(ticket, yes=yes, actor="a person")
    except ApprovalOver:
        return False
    return True


def one_answer_counts(story: Story) -> None:
    told = [story.results["one"], story.results["other"]]
    kept = story.run(signals_of(JOB))
    assert told.count(True) == len(kept) == 1, (
        f"{told} were told that they had answered, and {kept} came of it"
    )


def race_of(first: Ticket, second: Ticket, name: str) -> Scenario:
    return Scenario(
        name, asked_twice,
        [
            acting("one", lambda: answering(first, yes=True)),
            acting("other", lambda: answering(second, yes=False)),
        ],
        one_answer_counts,
    )  # fmt: skip


same = race_of(TICKETS[0], TICKETS[0], "answer × answer")
two = race_of(TICKETS[0], TICKETS[1], "answer × answer by another address")


@named(91)
@pytest.mark.parametrize("raced", [same, two], ids=lambda raced: raced.name)
def test_one_answer_counts(race: Race, raced: Scenario) -> None:
    race(raced, share=0.3)


@named(91)
@in_modes("plain", "held")
def test_two_answers_count_without_the_lock(race: Race) -> None:
    race.turns_red(two, Cut("lock_waiters", ("FOR UPDATE", "")))


# --- the time of the wait, and a cancel ---------------------------------------------------------------

OVER = Waiting(name="w", seq=1, beside=False, signal="approved", until_us=1, over=TIMED_OUT)


def asked_and_suspended() -> Script:
    yield from asked_twice()
    yield suspend(FIRST)


def the_job_gets_what_the_person_was_told(story: Story) -> None:
    waited = story.results["worker"]
    assert waited is not None and waited.result is not None
    assert story.results["person"] == (waited.result != TIMED_OUT), (
        f"the person was told {story.results['person']}, and the job got {waited.result}"
    )


def it_is_cancelled_and_the_person_knows(story: Story) -> None:
    assert state(story) == State.CANCELLED
    assert story.results["person"] == bool(story.run(signals_of(JOB)))


in_time = Scenario(
    "answer × time of the wait × cancel", asked_twice,
    [
        doing("worker", memory.wait(Fencing(JOB, FIRST, 1), OVER)),
        acting("person", lambda: answering(TICKETS[0], yes=True)),
        doing("client", cancel()),
    ],
    the_job_gets_what_the_person_was_told,
)  # fmt: skip
cancelled = Scenario(
    "answer × cancel of a suspended job", asked_and_suspended,
    [acting("person", lambda: answering(TICKETS[0], yes=True)), doing("client", cancel())],
    it_is_cancelled_and_the_person_knows,
)  # fmt: skip


@named(91)
@pytest.mark.parametrize("raced", [in_time, cancelled], ids=lambda raced: raced.name)
def test_an_answer_that_was_taken_reaches_the_job(race: Race, raced: Scenario) -> None:
    race(raced, share=0.3)


@named(91)
@in_modes("plain", "held")
def test_an_answer_is_lost_where_the_time_withdraws_no_address(race: Race) -> None:
    race.turns_red(
        in_time, Cut("withdraw_approvals", ("answered_at IS NULL", "false"), ("answered_at IS NULL", "0 = 1"))
    )
