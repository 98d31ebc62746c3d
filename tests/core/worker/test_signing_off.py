"""No registration of a worker outlives it as a living one, and none stays that it does not know."""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import pytest

from fencerow.core.model.state import WorkerState
from fencerow.core.store import store
from fencerow.core.worker import keeper as module
from fencerow.db.run import Operation
from fencerow.testing.clock import DatabaseClock
from tests.core.worker.faulty import Faulty
from tests.core.worker.stage import quick, until, working
from tests.kit.jobs import AnyEngine, bury

T = TypeVar("T")
LONG = quick(lease_s=1000.0)  # nobody else sees a lease run out while the test lasts


def alive(engine: AnyEngine) -> set[str]:
    """The registrations of the worker that are marked alive."""
    rows = engine.run(store.list_workers(state=WorkerState.ALIVE.value))
    return {each.id for each in rows if each.name != "w"}  # those of the tests are called w


async def send() -> None: ...


async def declared_dead(engine: AnyEngine, clock: DatabaseClock) -> None:
    clock.advance(1001)
    bury(engine)


async def test_a_registration_whose_reply_was_lost_is_ended_by_the_next(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    faulty: Any = Faulty(engine)
    async with working(faulty, send, config=LONG) as stage:
        first = stage.worker.holder
        faulty.lose_reply("register")
        await declared_dead(engine, clock)
        await until(lambda: stage.worker.holder not in (None, first), what="it has registered anew")
        await until(lambda: alive(engine) == {stage.worker.holder}, what="the lost registration has ended")
    assert faulty.seen.count("register") == 3
    assert alive(engine) == set()


class Held(Faulty):
    """The reply to a registration comes when the test lets it."""

    def __init__(self, engine: AnyEngine) -> None:
        super().__init__(engine)
        self.holds, self.reached, self.gate = False, threading.Event(), threading.Event()

    def keeper(self, **options: Any) -> Any:
        made = super().keeper(**options)
        run = made.run

        def held(operation: Operation[T]) -> T:
            result: T = run(operation)
            if operation.name == "register" and self.holds:
                self.reached.set()
                self.gate.wait(60)
            return result

        made.run = held
        return made


async def test_a_worker_that_stops_while_it_registers_signs_off_when_the_reply_comes(
    engine: AnyEngine, clock: DatabaseClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SIGN_OFF_S", 0.1)
    slow: Any = Held(engine)
    async with working(slow, send, config=LONG):
        slow.holds = True
        await declared_dead(engine, clock)
        await until(slow.reached.is_set, what="it registers anew")
    assert len(alive(engine)) == 1, "the server has done it, and the worker has gone"
    slow.gate.set()

    await until(lambda: alive(engine) == set(), what="it has signed off")
    await until(lambda: not any(each.name == "fencerow-keeper" for each in threading.enumerate()))


async def test_a_worker_that_cannot_register_at_its_start_leaves_no_living_row(engine: AnyEngine) -> None:
    faulty: Any = Faulty(engine)
    faulty.lose_reply("register", times=1_000)
    with pytest.raises(Exception, match="register was lost"):
        async with working(faulty, send, config=LONG):
            pass

    assert alive(engine) == set()
