"""What counts as the recovery from a silence, and when it is late."""

from __future__ import annotations

import time

import pytest

from fencerow.core.store import store
from fencerow.testing.clock import DatabaseClock
from tests.jobs import AnyEngine, bury, register, running
from tests.storm.plan import LEASE_S, RECOVERY_S
from tests.storm.recovery import recoveries
from tests.storm.scene import Silence

STOP_S = LEASE_S + 1.0
LATE_S = 2 * RECOVERY_S
AGO_S = 60.0
NAME = "w"  # that of all workers of `register`


@pytest.mark.parametrize("let_go_on", [True, False])
def test_what_was_taken_back_late_is_found(engine: AnyEngine, clock: DatabaseClock, let_go_on: bool) -> None:
    """The control: it never renewed again, so from its silence on its jobs were owed to the others."""
    holder, at = _silent(engine, clock)
    clock.advance(LATE_S)

    _take_back(engine, holder)

    silence = Silence(NAME, at, "stopped", at + STOP_S) if let_go_on else Silence(NAME, at, "killed")
    (found,) = recoveries(engine, [silence], [])
    assert found.is_late
    assert found.took_s >= LATE_S - 0.5


def test_a_worker_that_went_on_after_a_stop_owes_nothing_for_it(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    """Nobody gave it up, as when it was stopped with a lock in its hands; much later it ends by something else."""
    holder, at = _silent(engine, clock)
    clock.advance(STOP_S + 0.1)
    assert engine.run(store.renew(holder=holder))
    clock.advance(LATE_S)

    _take_back(engine, holder)

    assert recoveries(engine, [Silence(NAME, at, "stopped", at + STOP_S)], []) == []
    # That it renewed excuses only who was let go on: of one that was killed nobody else may renew the lease.
    (found,) = recoveries(engine, [Silence(NAME, at, "killed")], [])
    assert found.is_late


def _silent(engine: AnyEngine, clock: DatabaseClock) -> tuple[str, float]:
    """A worker with a job, and when it fell silent: so long ago that all that follows is past."""
    clock.advance(-AGO_S)
    holder = register(engine, lease_s=LEASE_S)
    running(engine, holder)
    return holder, time.time() - AGO_S


def _take_back(engine: AnyEngine, holder: str) -> None:
    assert holder in bury(engine)
    (taken, _) = engine.run(store.reclaim([holder], limit=10, actor="test"))
    assert taken
