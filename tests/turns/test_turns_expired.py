"""A job that has expired gets no turn: it would hold it until a sweep ends it, and nobody would use it."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.limits import Limit, limits
from fencerow.testing.clock import DatabaseClock
from tests.kit.jobs import AnyEngine, new_job, submit
from tests.turns.test_turns import hand_over


@pytest.mark.parametrize("needs", [{"exclusive": "k"}, {"limits": ("few",)}])
def test_a_turn_goes_past_those_that_have_expired(
    engine: AnyEngine, clock: DatabaseClock, needs: dict[str, Any]
) -> None:
    engine.run(limits.define(Limit("few", at_once=1), actor="ada", reason=None))
    submit(engine, *(new_job(expires_s=60.0, **needs) for _ in range(2)))
    (last,) = submit(engine, new_job(**needs))

    clock.advance(61)

    assert hand_over(engine) == [last]
