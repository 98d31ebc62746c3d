"""Whose a unique key is: the job that its row names, for as long as that one counts."""

from __future__ import annotations

import msgspec
import pytest

from fencerow.core.store import store
from fencerow.testing.clock import DatabaseClock
from fencerow.unique.rules import UniqueRule
from tests.kit.jobs import AnyEngine, claim, register
from tests.unique.test_submitting import (
    ALWAYS,
    DEBOUNCE,
    KEEP,
    REPLACE,
    THROTTLE,
    UNTIL_START,
    answers,
    asked,
    live,
    submit,
)


@pytest.mark.parametrize(
    ("rule", "then"),
    [
        (KEEP, "inserted"),
        (UNTIL_START, "inserted"),
        (REPLACE, "inserted"),
        (DEBOUNCE, "inserted"),
        (THROTTLE, "existing"),  # whatever became of it
        (ALWAYS, "existing"),  # as one that has failed
    ],
)
def test_a_job_that_has_expired_counts_as_ended_before_anybody_has_swept(
    engine: AnyEngine, clock: DatabaseClock, rule: UniqueRule, then: str
) -> None:
    submit(engine, asked(rule, expires_s=1000.0))
    clock.advance(1001.0)

    later = asked(rule)
    assert answers(engine, later) == [then]

    clock.advance(rule.put_off_s or 0.0)
    ran = [job.id for job in claim(engine, register(engine))]
    assert ran == ([later.job.id] if then == "inserted" else [])
    assert len(engine.run(store.expire(limit=9, actor=None))) == 1


@pytest.mark.parametrize("rule", [KEEP, REPLACE, THROTTLE])
@pytest.mark.parametrize("again", [False, True])
def test_a_key_whose_first_submit_stored_nothing_is_that_of_the_second(
    engine: AnyEngine, rule: UniqueRule, again: bool
) -> None:
    """The row was made for the first, which ended before anybody submitted it under the key."""
    first, second = asked(rule), asked(rule)
    engine.run(store.submit([msgspec.structs.replace(first.job, terms=None)]))
    engine.run(store.cancel(first.job.id, actor=None))

    assert answers(engine, first, second, again=again, own={first.job.id}) == ["existing", "inserted"]

    (third,) = submit(engine, asked(rule))
    assert (third.id, third.replay) == (second.job.id, True)
    assert live(engine) == 1


@pytest.mark.parametrize(
    ("rule", "then"),
    [(KEEP, "existing"), (UNTIL_START, "existing"), (REPLACE, "replaced"), (THROTTLE, "inserted")],
)
@pytest.mark.parametrize("in_a_batch", [False, True])
def test_a_live_job_counts_under_the_key_that_it_is_submitted_again_under(
    engine: AnyEngine, rule: UniqueRule, then: str, in_a_batch: bool
) -> None:
    """No period counts for it: it was not stored under the key."""
    first, second = asked(rule), asked(rule)
    engine.run(store.submit([msgspec.structs.replace(first.job, terms=None)]))
    own = {first.job.id}
    calls = [[first, second]] if in_a_batch else [[first], [second]]

    assert [said for call in calls for said in answers(engine, *call, own=own)] == ["existing", then]
    assert live(engine) == (2 if then == "inserted" else 1)


def test_a_period_that_was_written_before_the_clock_went_back_does_not_count(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    clock.advance(86_400.0)
    submit(engine, asked(THROTTLE))
    clock.advance(-86_400.0)

    assert answers(engine, asked(THROTTLE), asked(THROTTLE)) == ["inserted", "existing"]
    assert answers(engine, asked(THROTTLE)) == ["existing"]


def test_a_debounced_job_of_before_the_clock_went_back_is_put_off_no_more(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    """From when its greatest delay counts nobody knows, so that submits that keep coming would put it off for a day."""
    clock.advance(86_400.0)
    (first,) = submit(engine, asked(DEBOUNCE))
    clock.advance(-86_400.0)

    assert answers(engine, asked(DEBOUNCE)) == ["replaced"]
    assert [job.id for job in claim(engine, register(engine))] == [first.id]
