"""Cancel, revive and delete when the answer is lost: the caller learns what is true, and nothing happens twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fencerow.client import Client
from fencerow.core.client.refs import CancelAnswer
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.errors import IllegalMove, OutcomeUnknown
from fencerow.operators import looking
from tests.core.client.flaky import Flaky
from tests.core.store.stage import bring
from tests.kit.jobs import AnyEngine, claim, read, register, submit

losses = pytest.mark.parametrize("loss", ["lost after", "lost before"])


def over(flaky: Flaky) -> Client:
    return Client(flaky)


@losses
def test_a_cancel_is_answered_as_it_was(engine: AnyEngine, loss: str) -> None:
    (queued,) = submit(engine)
    assert over(Flaky(engine, loss)).cancel(queued) is CancelAnswer.CANCELLED
    assert read(engine, queued).state is State.CANCELLED

    running = bring(engine, State.RUNNING)
    assert over(Flaky(engine, loss)).cancel(running.id) is CancelAnswer.REQUESTED


def test_a_cancel_in_doubt_is_refused_when_the_job_succeeded(engine: AnyEngine) -> None:
    done = bring(engine, State.SUCCEEDED)
    with pytest.raises(IllegalMove):
        over(Flaky(engine, "lost before")).cancel(done.id)


@losses
def test_a_revive_happens_once(engine: AnyEngine, loss: str) -> None:
    job = bring(engine, State.FAILED)
    over(Flaky(engine, loss)).revive(job.id)

    assert read(engine, job.id).state is State.QUEUED
    assert [event.kind for event in engine.run(looking.events(job.id))].count("revived") == 1


def test_a_revived_job_that_ended_meanwhile_does_not_run_again(engine: AnyEngine) -> None:
    job = bring(engine, State.FAILED)

    class Busy(Flaky):
        """A worker finishes the revived job before the caller looks."""

        def run(self, operation):  # type: ignore[no-untyped-def]
            try:
                return super().run(operation)
            except OutcomeUnknown:
                (again,) = claim(engine, holder := register(engine))
                engine.run(store.succeed([store.Success(again.id, again.attempt, "1")], holder=holder))
                raise

    over(Busy(engine, "lost after")).revive(job.id)

    found = read(engine, job.id)
    assert (found.state, found.attempt) == (State.SUCCEEDED, job.attempt + 1)


@losses
def test_a_delete_is_answered_as_it_was(engine: AnyEngine, loss: str) -> None:
    job = bring(engine, State.SUCCEEDED)
    over(Flaky(engine, loss)).delete(job.id)
    assert engine.run(store.existing([job.id])) == set()


@pytest.mark.parametrize(
    "move", [Client.cancel, Client.revive, Client.delete], ids=lambda move: str(move.__name__)
)
def test_doubt_stays_doubt_while_the_database_is_away(
    engine: AnyEngine, move: Callable[[Client, str], object]
) -> None:
    class Away(Flaky):
        def run(self, operation):  # type: ignore[no-untyped-def]
            try:
                return super().run(operation)
            except OutcomeUnknown:
                self.down = True
                raise

    job = bring(engine, State.QUEUED if move is Client.cancel else State.FAILED)
    with pytest.raises(OutcomeUnknown):
        move(over(Away(engine, "lost after")), job.id)
