"""What counts as the recovery from a silence, and when it is late."""

from __future__ import annotations

import math
import time
from uuid import UUID

import pytest

from fencerow.core.model.ids import new_id
from fencerow.core.store import store
from fencerow.testing.clock import DatabaseClock
from tests.kit.jobs import AnyEngine, bury, register, running
from tests.proof.storm.pace import Pace
from tests.proof.storm.plan import HOUR_S, LEASE_S, RECOVERY_S, RENEW_S, SWEEP_S
from tests.proof.storm.recovery import recoveries
from tests.proof.storm.scene import Silence

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
    (found,) = recoveries(engine, [silence], [], _pace(at))
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

    pace = _pace(at)
    assert recoveries(engine, [Silence(NAME, at, "stopped", at + STOP_S)], [], pace) == []
    # That it renewed excuses only who was let go on: of one that was killed nobody else may renew the lease.
    (found,) = recoveries(engine, [Silence(NAME, at, "killed")], [], pace)
    assert found.is_late


def test_what_a_slow_machine_delays_is_not_late(engine: AnyEngine, clock: DatabaseClock) -> None:
    """Seconds alone say more about the machine than about the rule: another worker's sweeps are delayed as much."""
    holder, at = _silent(engine, clock)
    clock.advance(LATE_S)

    _take_back(engine, holder)

    (found,) = recoveries(engine, [Silence(NAME, at, "killed")], [], _pace(at, slower=3))
    assert found.took_s > found.bound_s
    assert not found.is_late


def test_who_hardly_sweeps_is_not_excused_by_few_sweeps(engine: AnyEngine, clock: DatabaseClock) -> None:
    holder, at = _silent(engine, clock)
    clock.advance(4 * RECOVERY_S)

    _take_back(engine, holder)

    pace = Pace(_pace(at).renewals, [])
    (found,) = recoveries(engine, [Silence(NAME, at, "killed")], [], pace)
    assert found.is_late


@pytest.mark.parametrize("off_s", [HOUR_S, -HOUR_S])
def test_who_registered_while_the_clock_was_an_hour_off_counts_as_all_others(
    engine: AnyEngine, clock: DatabaseClock, off_s: float
) -> None:
    """Of two lives under one name, what the second one held is looked for."""
    before, at = _silent(engine, clock)
    engine.run(store.retire(holder=before))
    clock.advance(off_s)
    holder = register(engine, lease_s=LEASE_S, holder=_id(at - 1.0))
    clock.advance(-off_s)
    assert engine.run(store.renew(holder=holder))
    running(engine, holder)
    clock.advance(RECOVERY_S)

    _take_back(engine, holder)

    (found,) = recoveries(engine, [Silence(NAME, at, "killed")], [], _pace(at))
    assert RECOVERY_S - 0.5 < found.took_s < LATE_S


def _pace(since: float, *, slower: int = 1) -> Pace:
    """A worker that nothing strikes, until long after the jobs were taken back."""
    return Pace(_each(since, RENEW_S * slower), _each(since, SWEEP_S * slower))


def _each(since: float, pause_s: float) -> list[float]:
    return [since + number * pause_s for number in range(math.ceil(AGO_S / pause_s))]


def _silent(engine: AnyEngine, clock: DatabaseClock) -> tuple[str, float]:
    """A worker with a job, and when it fell silent: so long ago that all that follows is past."""
    clock.advance(-AGO_S)
    at = time.time() - AGO_S
    holder = register(engine, lease_s=LEASE_S, holder=_id(at - 2.0))
    running(engine, holder)
    return holder, at


def _id(made_s: float) -> str:
    """As a worker's process makes it at that time of its host."""
    (_, rest) = divmod(UUID(new_id()).int, 1 << 80)
    return str(UUID(int=(round(made_s * 1000) << 80) + rest))


def _take_back(engine: AnyEngine, holder: str) -> None:
    assert holder in bury(engine)
    (taken, _) = engine.run(store.reclaim([holder], limit=10, actor="test"))
    assert taken
