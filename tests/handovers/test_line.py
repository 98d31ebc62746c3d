"""The ends of a line are taken in the order of the submits, each once, whatever the jobs became."""

from __future__ import annotations

import pytest

from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.errors import HandoverLost
from fencerow.handovers.handovers import mend
from fencerow.handovers.terms import HandoverTerms
from fencerow.testing.clock import DatabaseClock
from tests.core.store.stage import rows
from tests.handovers.stage import HOLD_S, end, ids, line, receiver
from tests.kit import jobs
from tests.kit.jobs import AnyEngine


def test_the_ends_of_a_key_are_taken_in_the_order_of_the_submits_one_after_the_other(
    engine: AnyEngine,
) -> None:
    first, second, third = line(engine, 3)
    end(engine, third)
    end(engine, first, second)
    bot = receiver(engine)

    order = []
    while taken := bot.take(10):
        order.append(ids(taken))
        bot.confirm(taken[0])

    assert order == [[first], [second], [third]]


def test_an_end_waits_for_those_before_it_but_no_longer_than_its_hold(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    first, second = line(engine, 2)
    end(engine, second)
    bot = receiver(engine)
    clock.advance(HOLD_S - 5)
    assert bot.take(10) == []

    clock.advance(10)
    (held,) = bot.take(10)
    bot.confirm(held)
    end(engine, first)
    (late,) = bot.take(10)
    bot.confirm(late)

    assert (held.job_id, late.job_id) == (second, first)
    assert bot.take(10) == []


@pytest.mark.parametrize("how", ["succeed", "fail", "cancel", "stop"])
def test_every_end_is_handed_over_and_frees_those_behind_it(engine: AnyEngine, how: str) -> None:
    first, second = line(engine, 2)
    end(engine, second)
    end(engine, first, how=how)
    bot = receiver(engine)

    (taken,) = bot.take(10)

    state = {"succeed": State.SUCCEEDED, "fail": State.FAILED}.get(how, State.CANCELLED)
    assert (taken.job_id, taken.state) == (first, state)
    assert taken.result == ({"n": taken.attempt} if how == "succeed" else None)
    assert taken.error == ({"code": "x"} if how == "fail" else None)
    bot.confirm(taken)
    assert ids(bot.take(10)) == [second]


def test_a_job_that_expires_is_handed_over(engine: AnyEngine, clock: DatabaseClock) -> None:
    (first,) = line(engine, 1, expires_s=60.0)
    clock.advance(61)
    (moved,) = engine.run(store.expire(limit=10, actor=None))

    (taken,) = receiver(engine).take()

    assert moved.awaited  # so that its end is announced
    assert (taken.job_id, taken.error["code"]) == (first, "expired")


def test_lines_do_not_wait_for_one_another_and_receivers_have_their_own(engine: AnyEngine) -> None:
    (blocked,) = line(engine, 1)
    behind = line(engine, 1)
    free = line(engine, 1, key="other")
    foreign = line(engine, 1, to="mailer")
    end(engine, *behind, *free, *foreign)

    assert ids(receiver(engine).take(10)) == free
    assert ids(receiver(engine, "mailer").take(10)) == foreign
    end(engine, blocked)
    assert ids(receiver(engine).take(10)) == [blocked]


def test_jobs_of_one_submit_line_up_as_they_stand_there(engine: AnyEngine) -> None:
    terms = HandoverTerms("bot", "k", HOLD_S).terms
    asked = [jobs.new_job(terms=terms) for _ in range(20)][::-1]  # their ids fall
    jobs.submit(engine, *asked)
    bot = receiver(engine)
    end(engine, *(job.id for job in asked))

    order = []
    while taken := bot.take():
        order += ids(taken)
        bot.confirm(taken[0])

    assert order == [job.id for job in asked]


def test_a_submit_that_is_repeated_takes_no_second_place(engine: AnyEngine) -> None:
    job = jobs.new_job(terms=HandoverTerms("bot", "k", HOLD_S).terms)
    jobs.submit(engine, job)
    engine.run(store.resubmit([job]))
    end(engine, job.id)
    engine.run(store.resubmit([job]))

    assert ids(receiver(engine).take(10)) == [job.id]
    assert len(rows(engine, "SELECT job_id FROM {handovers}")) == 1


def test_jobs_without_a_handover_leave_no_row(engine: AnyEngine) -> None:
    (job_id,) = jobs.submit(engine)
    end(engine, job_id)

    assert rows(engine, "SELECT job_id FROM {handovers}") == []


def test_the_first_end_of_a_job_stands(engine: AnyEngine) -> None:
    (first,) = line(engine, 1)
    end(engine, first)
    columns = rows(engine, "SELECT state, attempt FROM {handovers}")

    engine.run(mend(0, limit=100))

    assert rows(engine, "SELECT state, attempt FROM {handovers}") == columns


def test_a_revived_job_is_handed_over_again_and_its_first_take_is_over(engine: AnyEngine) -> None:
    first, second = line(engine, 2)
    end(engine, first, how="fail")
    bot = receiver(engine)
    (taken,) = bot.take()
    bot.confirm(taken)
    engine.run(store.revive(first, actor="ada"))
    end(engine, second)
    assert bot.take() == []  # the revived one has its place again

    end(engine, first)
    (again,) = bot.take()

    assert (again.job_id, again.state) == (first, State.SUCCEEDED)
    assert again.token > taken.token
    with pytest.raises(HandoverLost):
        bot.confirm(taken)


def test_ends_that_were_written_nowhere_are_found(engine: AnyEngine) -> None:
    first, second = line(engine, 2)
    end(engine, first)
    _forget_end(engine)

    found = engine.run(mend(0, limit=100))

    assert found.ids == [first]
    assert [each.result for each in receiver(engine).take()] == [{"n": 1}]
    assert engine.run(mend(0, limit=100)).ids == []
    assert rows(engine, "SELECT state FROM {handovers} WHERE job_id = '" + second + "'") == [{"state": None}]


def test_a_job_that_is_nowhere_is_handed_over_as_lost(engine: AnyEngine) -> None:
    (first,) = line(engine, 1)
    end(engine, first)
    engine.run(store.delete([first]))
    _forget_end(engine)

    engine.run(mend(0, limit=100))

    (taken,) = receiver(engine).take()
    assert (taken.state, taken.error["code"]) == (State.FAILED, "job_gone")


def _forget_end(engine: AnyEngine) -> None:
    """As somebody leaves it who moves the job by hand."""
    rows(
        engine,
        "UPDATE {handovers} SET state = NULL, attempt = NULL, result = NULL, ended_at = NULL, held_until = NULL "
        "RETURNING job_id",
    )
