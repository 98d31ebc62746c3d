"""What `fencerow top` sees at one look: queues, workers, latest failures. Each question is bounded."""

from __future__ import annotations

import time

import msgspec

from fencerow.core.client.handle import stored_error
from fencerow.core.model.state import State, WorkerState
from fencerow.core.model.worker import WorkerRecord
from fencerow.core.store import store
from fencerow.db.engine import Engine
from fencerow.db.run import Steps, as_int, as_int_or_none, execute, operation, text_or_none
from fencerow.db.text import kind_and_text
from fencerow.operators.queues import paused_queues

PATIENCE_S = 5.0  # of a statement of ours, where the engine can end one
LATELY_S = 60.0  # what "lately" means for ends and failures
ENDS_MAX = 10_000  # of each state that are counted; more than this in a minute is shown as this
FAILURES = 8
WORKERS_MAX = 100


class QueueNow(msgspec.Struct, kw_only=True):
    """One queue: jobs that are due, due later, running or waiting for something else; what ended in the last minute."""

    queue: str
    due: int = 0
    later: int = 0
    running: int = 0
    waiting: int = 0
    first_due_us: int | None = None
    ended: int = 0
    failed: int = 0
    paused: bool = False


class FailedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that failed: when, in which attempt, and what it said last."""

    id: str
    queue: str
    name: str
    attempt: int
    ended_at_us: int
    message: str


class Glance(msgspec.Struct, frozen=True, kw_only=True):
    """All that was seen, and how long it took to ask."""

    now_us: int
    seconds: float
    queues: list[QueueNow]
    workers: list[WorkerRecord]
    failures: list[FailedJob]


def look(engine: Engine) -> Glance:
    """Ask once: five short statements, each read alone, so they may be some milliseconds apart.

    Raises:
        Unavailable, Busy and their kin: the database could not be asked, or not in time.
    """
    began = time.monotonic()
    now_us = engine.run(store.clock())
    found = {each.queue: each for each in engine.run(live_queues())}
    for queue, state, jobs in engine.run(lately_ended()):
        entry = found.setdefault(queue, QueueNow(queue=queue))
        entry.ended += jobs
        entry.failed += jobs if state is State.FAILED else 0
    for pause in engine.run(paused_queues()):
        found.setdefault(pause.name, QueueNow(queue=pause.name)).paused = True
    workers = engine.run(store.list_workers(state=WorkerState.ALIVE.value, limit=WORKERS_MAX))
    failures = engine.run(latest_failures())
    return Glance(
        now_us=now_us,
        seconds=time.monotonic() - began,
        queues=[found[name] for name in sorted(found)],
        workers=sorted(workers, key=lambda worker: (worker.name, worker.id)),
        failures=failures,
    )


@operation(alone=True, repeatable=True, writes="", patience_s=PATIENCE_S)
def live_queues() -> Steps[list[QueueNow]]:
    """The live jobs of each queue."""
    rows = yield from execute("top_queues")
    return [
        QueueNow(
            queue=str(row[0]),
            due=as_int(row[1]),
            later=as_int(row[2]),
            running=as_int(row[3]),
            waiting=as_int(row[4]),
            first_due_us=as_int_or_none(row[5]),
        )
        for row in rows
    ]


@operation(alone=True, repeatable=True, writes="", patience_s=PATIENCE_S)
def lately_ended() -> Steps[list[tuple[str, State, int]]]:
    """Jobs that ended in the last minute and are kept: queue, state, number."""
    rows = yield from execute("top_ends", seconds=LATELY_S, limit=ENDS_MAX)
    return [(str(row[0]), State(str(row[1])), as_int(row[2])) for row in rows]


@operation(alone=True, repeatable=True, writes="", patience_s=PATIENCE_S)
def latest_failures() -> Steps[list[FailedJob]]:
    """The jobs that failed last, the newest first."""
    rows = yield from execute("top_failures", limit=FAILURES)
    return [
        FailedJob(
            id=str(row[0]),
            queue=str(row[1]),
            name=str(row[2]),
            attempt=as_int(row[3]),
            ended_at_us=as_int(row[4]),
            message=_message(text_or_none(row[5])),
        )
        for row in rows
    ]


def _message(text: str | None) -> str:
    error = stored_error(text)
    return kind_and_text(error.type, error.message)
