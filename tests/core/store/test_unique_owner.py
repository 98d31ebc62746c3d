"""Whose a unique key is: the job that its row names, for as long as that one counts."""

from __future__ import annotations

import pytest

from fencerow.core.model.unique import UniqueRule
from fencerow.core.store import store
from fencerow.testing.clock import DatabaseClock
from tests.core.store.test_unique import (
    ALWAYS,
    DEBOUNCE,
    KEEP,
    REPLACE,
    THROTTLE,
    UNTIL_START,
    answers,
    asked,
    submit,
)
from tests.kit.jobs import AnyEngine, claim, register


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
