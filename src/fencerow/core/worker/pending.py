"""Outcomes on their way to the database: which statement writes each, and what it says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from fencerow.core.model.outcome import (
    Crashed,
    Failed,
    Outcome,
    Released,
    Retried,
    Snoozed,
    Stopped,
    Succeeded,
)
from fencerow.core.model.state import State
from fencerow.core.store.finish import Failure, Requeue
from fencerow.core.store.reap import Crash
from fencerow.core.telemetry import Event
from fencerow.core.worker.attempt import Attempt

BATCH_BYTES_MAX = 8 * 1024 * 1024

EVENTS: dict[type[object], Event] = {
    Succeeded: Event.SUCCEEDED,
    Failed: Event.FAILED,
    Retried: Event.RETRIED,
    Snoozed: Event.SNOOZED,
    Released: Event.RELEASED,
    Stopped: Event.STOPPED,
    Crashed: Event.CRASHED,
}


KINDS: dict[type[object], str] = {
    Succeeded: "succeed",
    Failed: "fail",
    Stopped: "stop",
    Crashed: "crash",
}


class Pending(msgspec.Struct, eq=False, gc=False):
    """One outcome that the database has not confirmed."""

    attempt: Attempt
    outcome: Outcome
    duration_s: float
    apart_until: float = 0.0  # monotonic: until then it waits apart

    @property
    def id(self) -> str:
        return self.attempt.claimed.id

    @property
    def key(self) -> tuple[str, int]:
        """Two attempts of one job may be here at once, when a lost registration left the first behind."""
        return self.attempt.key

    @property
    def kind(self) -> str:
        """Which statement writes it."""
        return KINDS.get(type(self.outcome), "requeue")


def bounded(group: Iterable[Pending]) -> Iterable[list[Pending]]:
    """Batches below the size that one statement should have, with no job twice: the answer names ids alone."""
    batch: list[Pending] = []
    ids: set[str] = set()
    size = 0
    for each in group:
        job_id, outcome = each.attempt.claimed.id, each.outcome
        weight = len(outcome.result) if isinstance(outcome, Succeeded) else 512
        if batch and (size + weight > BATCH_BYTES_MAX or job_id in ids):
            yield batch
            batch, ids, size = [], set(), 0
        batch.append(each)
        ids.add(job_id)
        size += weight
    if batch:
        yield batch


def fence_of(each: Pending) -> tuple[str, int]:
    """Which attempt it is."""
    return each.attempt.key


def result_of(outcome: Outcome) -> str:
    """What a success stores."""
    assert isinstance(outcome, Succeeded)
    return outcome.result.decode()


def failures_of(batch: Iterable[Pending]) -> list[Failure]:
    """What failures store."""
    return [Failure(*fence_of(each), _error_of(each.outcome)) for each in batch]


def _error_of(outcome: Outcome) -> str:
    assert isinstance(outcome, Failed)
    return outcome.error.to_json()


def detail_of(outcome: Outcome) -> str:
    """What a stop stores."""
    assert isinstance(outcome, Stopped)
    return msgspec.json.encode({"type": "Cancelled", "code": "cancelled", "message": outcome.reason}).decode()


def requeue_of(each: Pending) -> Requeue:
    """How the job goes back to its queue."""
    job_id, attempt = fence_of(each)
    match each.outcome:
        case Retried(delay_s, error):
            return Requeue(
                id=job_id,
                attempt=attempt,
                kind="retried",
                delay_s=delay_s,
                failures=1,
                detail=error.to_json(),
            )
        case Snoozed(delay_s, reason):
            detail = msgspec.json.encode({"reason": reason}).decode()
            return Requeue(
                id=job_id, attempt=attempt, kind="snoozed", delay_s=delay_s, snoozes=1, detail=detail
            )
        case Released(reason, wait_s):
            detail = msgspec.json.encode({"reason": reason}).decode()
            return Requeue(id=job_id, attempt=attempt, kind="released", delay_s=wait_s, detail=detail)
        case _:
            raise AssertionError(f"{each.outcome!r} is no requeue")


def fits(outcome: Outcome, state: State) -> bool:
    """Whether the state is what this outcome would have led to."""
    match outcome:
        case Succeeded():
            return state is State.SUCCEEDED
        case Failed():
            return state is State.FAILED
        case Stopped():
            return state is State.CANCELLED
        case Crashed():
            return state in (State.QUEUED, State.FAILED, State.CANCELLED)
        case _:
            return state is State.QUEUED


def is_lasting(outcome: Outcome) -> bool:
    """Whether a database without it has lost something: a job that was released or crashed may be anywhere."""
    return not isinstance(outcome, Released | Crashed)


def facts(attempt: Attempt) -> dict[str, Any]:
    """What every event of an attempt carries."""
    claimed = attempt.claimed
    return {"job_id": claimed.id, "job": claimed.name, "queue": claimed.queue, "attempt": claimed.attempt}


def event_facts(outcome: Outcome) -> dict[str, Any]:
    """What its telemetry event carries beside the attempt."""
    match outcome:
        case Failed(error):
            return {"code": error.code}
        case Retried(delay_s, _) | Snoozed(delay_s, _):
            return {"delay_s": delay_s}
        case Released(reason, _) | Crashed(_, reason):
            return {"reason": reason}
        case _:
            return {}


def crash_of(each: Pending) -> Crash:
    """How the job comes back as a suspect."""
    assert isinstance(each.outcome, Crashed)
    job_id, attempt = fence_of(each)
    return Crash(job_id, attempt, each.outcome.delay_s, each.outcome.reason)
