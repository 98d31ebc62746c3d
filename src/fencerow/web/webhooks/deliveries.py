"""The operations on deliveries: made with their event, read by the job that sends them, noted. No HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from fencerow.core.model.job import NewJob
from fencerow.core.store import store
from fencerow.db.run import Steps, as_int, as_int_or_none, execute, first_column, operation, text_or_none

CIRCUIT_FAILURES: Final = 10  # in a row; then the endpoint is left alone for a while
CIRCUIT_S: Final = 60.0  # doubled with each probe that fails
CIRCUIT_S_MAX: Final = 3600.0
PROBE_GRACE_S: Final = 60.0  # beside its timeout; after that another one may try


class NewDelivery(msgspec.Struct, frozen=True):
    """What an endpoint is to be told of an event, and the id of the job that does it."""

    endpoint_id: str
    event_id: int
    webhook_id: str
    topic: str
    ended_id: str
    turn: str | None
    body: str
    job_id: str


@dataclass(frozen=True, slots=True)
class DueDelivery:
    """What a job is to deliver, and where. `wait_s`: the circuit is open for so long; None: it is closed, or this is
    the one that tries it."""

    endpoint_id: str
    event_id: int
    webhook_id: str
    body: bytes
    url: str
    timeout_s: float
    secrets: tuple[str, ...]
    state: str
    endpoint: str
    version: int
    wait_s: float | None
    now_us: int
    is_probe: bool

    def __repr__(self) -> str:
        return f"<DueDelivery {self.webhook_id} to {self.endpoint}>"


@dataclass(frozen=True, slots=True)
class PostAttempt:
    """What came of one POST. `failure`: its kind, None if it arrived."""

    took_s: float
    status: int | None = None
    failure: str | None = None


@operation()
def make(made: Sequence[NewDelivery], jobs: Sequence[NewJob]) -> Steps[list[NewJob]]:
    """Write deliveries and submit their jobs, for endpoints that are enabled and were not told of this event before;
    returns these jobs. In the transaction that acknowledges the event.
    """
    stored = set(
        first_column((yield from execute("make_deliveries", made=msgspec.json.encode(made).decode())))
    )
    return (yield from submitting([job for job in jobs if job.id in stored]))


def submitting(jobs: Sequence[NewJob]) -> Steps[list[NewJob]]:
    """Submit the jobs of deliveries; some wait for their turn."""
    free, waiting = (
        [each for each in jobs if not each.writes_more],
        [each for each in jobs if each.writes_more],
    )
    if free:
        yield from store.submit(free).steps()
    if waiting:
        yield from store.submit_gated(waiting).steps()
    return list(jobs)


class Again(msgspec.Struct, frozen=True):
    """A delivery that is to be sent once more: as it was seen, and the id of the job that does it."""

    endpoint: str
    event_id: int
    seen: str
    job_id: str


@operation()
def redeliver(again: Sequence[Again], jobs: Sequence[NewJob]) -> Steps[list[NewJob]]:
    """Submit these jobs for deliveries that no job delivers; returns those that were submitted.

    What another one redelivers meanwhile is left to him.
    """
    moved = set(first_column((yield from execute("redeliver", again=msgspec.json.encode(again).decode()))))
    return (yield from submitting([job for job in jobs if job.id in moved]))


@operation()
def admit(job_id: str) -> Steps[DueDelivery | None]:
    """What this job is to deliver; None: another job does that now, it is done, or the endpoint is removed.

    Where the time of an open circuit is over, one delivery of all is the probe; a crash of it costs that time again.
    """
    is_probe = bool((yield from execute("take_probe", job=job_id, grace_s=PROBE_GRACE_S)))
    rows = yield from execute("read_due_delivery", job=job_id)
    if not rows:
        return None
    row = rows[0]
    wait_us = None if is_probe else as_int_or_none(row[11])
    return DueDelivery(
        endpoint_id=str(row[0]),
        event_id=as_int(row[1]),
        webhook_id=str(row[2]),
        body=str(row[3]).encode(),
        url=str(row[4]),
        timeout_s=float(str(row[5])),
        secrets=tuple(text for text in map(text_or_none, row[6:8]) if text),
        state=str(row[8]),
        endpoint=str(row[9]),
        version=as_int(row[10]),
        wait_s=None if wait_us is None else max(wait_us / 1e6, 0.001),
        now_us=as_int(row[12]),
        is_probe=is_probe,
    )


@operation()
def note_arrived(job_id: str, attempt: PostAttempt) -> Steps[bool]:
    """It has arrived: in the transaction of the job's success. False: another job delivers it now."""
    rows = yield from execute("note_delivered", job=job_id)
    if not rows:
        return False
    yield from _note(as_int(rows[0][1]), str(rows[0][0]), as_int(rows[0][2]), attempt)
    yield from execute("close_circuit", endpoint=str(rows[0][0]))
    return True


@operation()
def note_failed(job_id: str, attempt: PostAttempt, *, is_probe: bool) -> Steps[int | None]:
    """It has not arrived; returns the number of this attempt. None: another job delivers it, and nothing is noted."""
    rows = yield from execute("count_attempt", job=job_id)
    if not rows:
        return None
    number = as_int(rows[0][2])
    yield from _note(as_int(rows[0][1]), str(rows[0][0]), number, attempt)
    yield from execute(
        "count_failure",
        endpoint=str(rows[0][0]),
        most=CIRCUIT_FAILURES,
        open_s=CIRCUIT_S,
        cap_s=CIRCUIT_S_MAX,
        probe=is_probe,
    )
    return number


@operation()
def note_gone(job_id: str, attempt: PostAttempt, *, version: int) -> Steps[bool]:
    """The endpoint, in this version, wants nothing more. False: it is in another version, or not enabled."""
    rows = yield from execute("count_attempt", job=job_id)
    if not rows:
        return False
    endpoint = str(rows[0][0])
    yield from _note(as_int(rows[0][1]), endpoint, as_int(rows[0][2]), attempt)
    return bool((yield from execute("note_gone", endpoint=endpoint, version=version)))


def _note(event: int, endpoint: str, number: int, attempt: PostAttempt) -> Steps[None]:
    yield from execute(
        "note_attempt",
        endpoint=endpoint,
        event=event,
        number=number,
        took_s=attempt.took_s,
        status=attempt.status,
        failure=attempt.failure,
    )
