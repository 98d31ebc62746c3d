"""Brings a job into any state, plays any move of the table by its store verb, and sees everything that changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fencerow.core.model.job import Claimed
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.core.store.attempts import Failure, Requeue, Stop, Success
from fencerow.core.store.claims import claim_given
from fencerow.core.store.reap import Crash
from fencerow.db.run import Steps, operation
from fencerow.errors import IllegalMove, JobNotFound
from fencerow.operators import changes
from fencerow.operators.job_change import JobChange
from fencerow.operators.queues import pause_queue, resume_queue
from fencerow.retention import disown as disowning
from fencerow.testing.clock import DatabaseClock
from fencerow.turns import affinity, handing
from fencerow_proof.moves import JobMove
from tests.kit.jobs import (
    AnyEngine,
    bury,
    claim,
    new_job,
    overdue,
    read,
    register,
    running,
    submit,
)

TIMEOUT_S = 10.0
EXPIRES_S = 1000.0
DISOWN_S = 500.0
ERROR = '{"type":"Boom"}'

Dump = dict[tuple[str, str], dict[str, object]]


@dataclass(frozen=True)
class Placed:
    """A job that was brought into a state, and the fence of the attempt that it had last."""

    id: str
    holder: str
    attempt: int


def table(engine: AnyEngine, name: str) -> str:
    """A table's name as the engine's dialect writes it."""
    return f"fencerow.{name}" if engine.dialect == "postgres" else f"fencerow_{name}"


def rows(engine: AnyEngine, text: str) -> list[dict[str, object]]:
    """What a plain SQL text returns, and what it changes is committed. `{jobs}` and the like name our tables."""
    names = (
        "jobs",
        "finished_jobs",
        "keys",
        "job_events",
        "job_logs",
        "job_progress",
        "schema_migrations",
        "unique_jobs",
        "handovers",
        "flows",
        "flow_jobs",
        "flow_edges",
        "flow_waits",
    )
    with engine.session() as session:
        cursor = session.connection.execute(text.format(**{name: table(engine, name) for name in names}))
        if cursor.description is None:
            return []
        columns = [column[0] for column in cursor.description]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def dump(engine: AnyEngine) -> Dump:
    """Every column of every job, live and finished."""
    return {
        (name, str(row["id"])): row
        for name in ("jobs", "finished_jobs")
        for row in rows(engine, "SELECT * FROM {" + name + "}")
    }


def changed(before: Dump, after: Dump) -> set[str]:
    """The ids of the jobs of which anything differs."""
    keys = before.keys() | after.keys()
    return {job_id for name, job_id in keys if before.get((name, job_id)) != after.get((name, job_id))}


def bring(engine: AnyEngine, state: State) -> Placed:
    """A job in this state that had an attempt before, so that an old fence is at hand for every move."""
    job = running(engine, holder := register(engine), timeout_s=TIMEOUT_S, expires_s=EXPIRES_S)
    placed = Placed(job.id, holder, job.attempt)
    match state:
        case State.RUNNING:
            pass
        case State.QUEUED:
            release(engine, placed)
            # With the turn of a key of its own, for which a job of another queue waits.
            rows(engine, "UPDATE {jobs} SET exclusive = '" + placed.id + "' WHERE id = '" + placed.id + "'")
            submit(engine, new_job(exclusive=placed.id, queue="for a turn"))
        case State.WAITING:
            release(engine, placed)
            # At a gate of its own, as if it had been submitted so.
            turn = f"state = 'waiting', exclusive = '{placed.id}', gate = 'key:{placed.id}'"
            rows(engine, "UPDATE {jobs} SET " + turn + " WHERE id = '" + placed.id + "'")
        case State.SUCCEEDED:
            succeed(engine, placed)
        case State.FAILED:
            fail(engine, placed)
        case State.CANCELLED:
            release(engine, placed)
            engine.run(store.cancel(placed.id, actor="ada"))
    assert read(engine, placed.id).state is state
    return placed


def bystanders(engine: AnyEngine) -> None:
    """One job in every state that no move below is about."""
    for state in State:
        placed = bring(engine, state)
        for name in ("jobs", "finished_jobs"):
            away = "queue = 'elsewhere', expires_at = NULL, deadline_at = NULL"
            rows(engine, "UPDATE {" + name + "} SET " + away + f" WHERE id = '{placed.id}'")


def only_bystanders(engine: AnyEngine) -> None:
    """Take away whatever job there is beside them, so that the next one finds none but them."""
    for name in ("jobs", "finished_jobs"):
        rows(engine, "DELETE FROM {" + name + "} WHERE queue <> 'elsewhere'")


def state_of(engine: AnyEngine, job_id: str) -> State | None:
    """Where a job stands; None when it is gone."""
    found = engine.run(store.read([job_id]))
    return found[job_id].state if found else None


def succeed(engine: AnyEngine, job: Placed) -> bool:
    return bool(engine.run(store.succeed([Success(job.id, job.attempt, '{"ok":true}')], holder=job.holder)))


def fail(engine: AnyEngine, job: Placed) -> bool:
    return bool(engine.run(store.fail([Failure(job.id, job.attempt, ERROR)], holder=job.holder)))


def stop(engine: AnyEngine, job: Placed) -> bool:
    return bool(engine.run(store.stop([Stop(job.id, job.attempt)], holder=job.holder)))


def retry(engine: AnyEngine, job: Placed) -> bool:
    again = Requeue(id=job.id, attempt=job.attempt, kind="retried", delay_s=5.0, failures=1, detail=ERROR)
    return bool(engine.run(store.requeue([again], holder=job.holder)))


def release(engine: AnyEngine, job: Placed) -> bool:
    back = Requeue(id=job.id, attempt=job.attempt, kind="released")
    return bool(engine.run(store.requeue([back], holder=job.holder)))


def suspend(engine: AnyEngine, job: Placed) -> bool:
    return engine.run(
        store.suspend([store.SuspendedAttempt(job.id, job.attempt)], holder=job.holder)
    ).ids == [job.id]


def wake(engine: AnyEngine, job: Placed) -> bool:
    """A job that waits at a gate is not woken: it is taken off that first, as if it had been suspended."""
    at_none = "UPDATE {jobs} SET gate = NULL, exclusive = NULL WHERE state = 'waiting' AND id = '"
    rows(engine, at_none + job.id + "'")
    return [each.id for each in engine.run(store.wake([job.id], actor="ada"))] == [job.id]


def crash(engine: AnyEngine, job: Placed) -> bool:
    """The child process that ran it died."""
    ended = Crash(job.id, job.attempt, 5.0, "killed by signal 9 (SIGKILL)")
    return bool(engine.run(store.crash([ended], holder=job.holder))[0])


def note_alone(engine: AnyEngine, job: Placed) -> bool:
    return engine.run(store.note_alone(job.id, holder=job.holder, attempt=job.attempt))


def cancel(engine: AnyEngine, job: Placed) -> bool:
    """Cancel what nobody runs; a running job would be asked, which is no move."""
    try:
        return engine.run(store.cancel(job.id, actor="ada", only_queued=True)).moved is not None
    except IllegalMove:
        return False


def change(engine: AnyEngine, job: Placed) -> bool:
    try:
        return engine.run(changes.change(job.id, JobChange(priority=7), actor="ada")).priority == 7
    except (IllegalMove, JobNotFound):
        return False


def ask(engine: AnyEngine, job: Placed) -> None:
    """Ask for the cancel of a running job."""
    asked = engine.run(store.cancel(job.id, actor="ada"))
    assert asked.moved is None
    assert asked.holder == job.holder


def revive(engine: AnyEngine, job: Placed) -> bool:
    try:
        return engine.run(store.revive(job.id, actor="ada")).id == job.id
    except (IllegalMove, JobNotFound):
        return False


def reclaim(engine: AnyEngine, job: Placed, clock: DatabaseClock) -> bool:
    """The holder dies, and what it held is taken back from it by name."""
    clock.advance(40)
    bury(engine)
    found, _ = engine.run(store.reclaim([job.holder], limit=10, actor="reaper"))
    return [one.id for one in found] == [job.id]


def time_out(engine: AnyEngine, job: Placed) -> bool:
    """Its holder calls it overdue."""
    engine.run(store.renew(holder=job.holder, stated=overdue((job.id, job.attempt, True))))
    return bool(engine.run(store.time_out(limit=10, delay_s=1.0, actor="reaper"))[0])


def expire(engine: AnyEngine, clock: DatabaseClock) -> bool:
    clock.advance(EXPIRES_S + 1)
    return bool(engine.run(store.expire(limit=10, actor="reaper")))


def disown(engine: AnyEngine, clock: DatabaseClock) -> bool:
    clock.advance(DISOWN_S + 1)
    return bool(engine.run(disowning.disown("mail", 0, age_s=DISOWN_S, look=10, actor="reaper")))


def take_turn_back(engine: AnyEngine, job: Placed) -> bool:
    """Its queue is paused meanwhile, and a job of another queue waits for its turn."""
    engine.run(pause_queue("mail", actor="ada"))
    taken = engine.run(handing.take_turns_back([f"key:{job.id}"], unclaimed_s=None))
    engine.run(resume_queue("mail"))
    return taken == [job.id]


def labelled(engine: AnyEngine, job: Placed) -> None:
    """Give a job a label, for which the wait is over."""
    rows(
        engine,
        f"UPDATE {{jobs}} SET affinity = 'gpu', affinity_wait_s = -1 WHERE id = '{job.id}' AND state = 'queued'",
    )


def fall_back(engine: AnyEngine, job: Placed) -> bool:
    labelled(engine, job)
    return bool(engine.run(affinity.fall_back(actor="worker w")))


@operation()
def taken(job_id: str, holder: str) -> Steps[list[Claimed]]:
    return (yield from claim_given("mail", [job_id], holder=holder, names=["send"], margin_s=60.0))


def play(engine: AnyEngine, clock: DatabaseClock, move: JobMove, job: Placed) -> bool:
    """Make a move by its verb with everything in its favour but the job's state; whether it said that it moved."""
    verbs: dict[JobMove, Callable[[], bool]] = {
        JobMove.ADMIT: lambda: bool(engine.run(handing.hand_over([f"key:{job.id}"])).queued),
        JobMove.SUSPEND: lambda: suspend(engine, job),
        JobMove.WAKE: lambda: wake(engine, job),
        JobMove.YIELD: lambda: take_turn_back(engine, job),
        JobMove.CLAIM: lambda: bool(claim(engine, register(engine))),
        JobMove.TAKE: lambda: bool(engine.run(taken(job.id, register(engine)))),
        JobMove.FALL_BACK: lambda: fall_back(engine, job),
        JobMove.RENEW: lambda: engine.run(store.renew(holder=job.holder)) is not None,
        JobMove.SUCCEED: lambda: succeed(engine, job),
        JobMove.RETRY: lambda: retry(engine, job),
        JobMove.RELEASE: lambda: release(engine, job),
        JobMove.FAIL: lambda: fail(engine, job),
        JobMove.STOP: lambda: stop(engine, job),
        JobMove.CRASH: lambda: crash(engine, job),
        JobMove.RECLAIM: lambda: reclaim(engine, job, clock),
        JobMove.TIMEOUT: lambda: time_out(engine, job),
        JobMove.CHANGE: lambda: change(engine, job),
        JobMove.CANCEL: lambda: cancel(engine, job),
        JobMove.EXPIRE: lambda: expire(engine, clock),
        JobMove.DISOWN: lambda: disown(engine, clock),
        JobMove.REVIVE: lambda: revive(engine, job),
        JobMove.DELETE: lambda: bool(engine.run(store.delete([job.id]))),
    }
    return verbs[move]()


def submit_one(engine: AnyEngine) -> str:
    (job_id,) = submit(engine)
    return job_id
