"""A worker that slept through its lease cannot change the job, whichever verb it tries: the promise of the name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.core.store.attempts import Failure, Requeue, Stop, Success
from fencerow.operators import looking
from fencerow.testing.clock import DatabaseClock
from tests.core.store import stage
from tests.core.store.stage import Placed, changed, dump, rows
from tests.kit.jobs import AnyEngine, bury, claim, read, register, running

Verb = Callable[[AnyEngine, Placed], object]


def requeue(kind: str) -> Verb:
    def verb(engine: AnyEngine, job: Placed) -> object:
        back = Requeue(id=job.id, attempt=job.attempt, kind=kind, delay_s=1.0, failures=1, snoozes=1)
        return engine.run(store.requeue([back], holder=job.holder))

    return verb


# Each answers with something false when the attempt no longer holds its job.
VERBS: dict[str, Verb] = {
    "succeed": lambda e, j: e.run(store.succeed([Success(j.id, j.attempt, '"stale"')], holder=j.holder)),
    "fail": lambda e, j: e.run(store.fail([Failure(j.id, j.attempt, '{"stale":1}')], holder=j.holder)),
    "stop": lambda e, j: e.run(store.stop([Stop(j.id, j.attempt)], holder=j.holder)),
    "retried": requeue("retried"),
    "snoozed": requeue("snoozed"),
    "released": requeue("released"),
    "crash": lambda e, j: e.run(store.crash([store.Crash(j.id, j.attempt, 0.0, "stale")], holder=j.holder))[
        0
    ],
    "note_alone": lambda e, j: e.run(store.note_alone(j.id, holder=j.holder, attempt=j.attempt)),
    "progress": lambda e, j: e.run(
        store.progress(j.id, holder=j.holder, attempt=j.attempt, percent=99.0, note="stale")
    ),
    "log": lambda e, j: e.run(
        store.log(j.id, holder=j.holder, attempt=j.attempt, level="info", message="stale")
    ),
    "fetch_args": lambda e, j: e.run(store.fetch_args(j.id, holder=j.holder, attempt=j.attempt)),
    "check_fence": lambda e, j: (
        e.run(store.check_fence(j.id, holder=j.holder, attempt=j.attempt)) is not None
    ),
    "hold_fence": lambda e, j: e.run(store.hold_fence(j.id, holder=j.holder, attempt=j.attempt)) is not None,
}


def taken_over(engine: AnyEngine, clock: DatabaseClock, *, asked: bool) -> tuple[Placed, Placed]:
    """The fence of a worker that slept, and that of the one which has its job now."""
    job = running(engine, sleeper := register(engine))
    clock.advance(31)
    assert bury(engine) == [sleeper]
    found, _ = engine.run(store.reclaim([sleeper], limit=10, actor="reaper"))
    assert [one.id for one in found] == [job.id]
    (again,) = engine.run(
        store.claim_suspect("mail", holder=(awake := register(engine)), names=["send"], margin_s=60)
    )
    if asked:
        engine.run(store.cancel(job.id, actor="ada"))
    return Placed(job.id, sleeper, job.attempt), Placed(job.id, awake, again.attempt)


def everything(engine: AnyEngine) -> object:
    notes = [
        rows(engine, "SELECT * FROM {" + name + "}") for name in ("job_events", "job_logs", "job_progress")
    ]
    return dump(engine), notes, engine.run(store.list_workers())[0].state


@pytest.mark.parametrize("verb", sorted(VERBS))
@pytest.mark.parametrize("asked", [False, True], ids=["", "cancel-asked"])
def test_the_sleeper_changes_nothing_and_the_newer_result_stands(
    engine: AnyEngine, clock: DatabaseClock, verb: str, asked: bool
) -> None:
    stale, newer = taken_over(engine, clock, asked=asked)
    before = everything(engine)

    # Half a fence is none: the sleeper with the newer attempt, the newer holder with the old attempt.
    for fence in (stale, Placed(stale.id, stale.holder, newer.attempt), Placed(stale.id, newer.holder, 1)):
        assert not VERBS[verb](engine, fence)
    assert everything(engine) == before

    assert engine.run(store.succeed([Success(newer.id, newer.attempt, '"newer"')], holder=newer.holder))
    after = dump(engine)
    assert not VERBS[verb](engine, stale)
    assert changed(after, dump(engine)) == set()
    found = read(engine, newer.id)
    assert (found.state, found.result, found.attempt) == (State.SUCCEEDED, "newer", 2)
    assert found.progress_note is None


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_the_holder_itself_is_heard(engine: AnyEngine, clock: DatabaseClock, verb: str) -> None:
    """The same calls under the right fence work, so the refusals above are the fence's."""
    _, newer = taken_over(engine, clock, asked=verb == "stop")
    assert VERBS[verb](engine, newer)


def test_the_dead_claim_and_renew_nothing(engine: AnyEngine, clock: DatabaseClock) -> None:
    stale, _ = taken_over(engine, clock, asked=False)
    stage.submit_one(engine)
    before = dump(engine)

    assert claim(engine, stale.holder) == []
    assert not engine.run(store.renew(holder=stale.holder))
    assert not engine.run(store.retire(holder=stale.holder))
    assert engine.run(store.holdings(holder=stale.holder)) == []
    assert changed(before, dump(engine)) == set()


def test_one_terminal_event_whoever_else_tries(engine: AnyEngine, clock: DatabaseClock) -> None:
    stale, newer = taken_over(engine, clock, asked=False)
    VERBS["fail"](engine, stale)
    VERBS["fail"](engine, newer)
    VERBS["fail"](engine, newer)
    VERBS["succeed"](engine, stale)

    kinds = [(event.kind, event.attempt) for event in engine.run(looking.events(newer.id))]
    assert kinds == [("reclaimed", 1), ("failed", 2)]
