"""Handovers, and a clock that stood ahead for a while."""

from __future__ import annotations

from fencerow.handovers.handovers import mend
from fencerow.testing.clock import DatabaseClock
from tests.handovers.stage import HOLD_S, end, ids, line, receiver
from tests.kit.jobs import AnyEngine


def test_a_hold_that_was_written_before_the_clock_went_back_begins_anew(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    _, behind = line(engine, 2)
    clock.advance(86_400.0)
    end(engine, behind)
    clock.advance(-86_400.0)
    engine.run(mend(0, limit=9))
    bot = receiver(engine)

    clock.advance(HOLD_S / 2)
    engine.run(mend(0, limit=9))
    assert bot.take(9) == []

    clock.advance(HOLD_S / 2 + 1.0)
    assert ids(bot.take(9)) == [behind]
