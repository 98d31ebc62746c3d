"""What is stored of a saga: written in the transaction that remembers a step, read by the compensation."""

from __future__ import annotations

import msgspec

from fencerow.core.model.job import AtOrNone, NewJob
from fencerow.db.removal import Looked
from fencerow.db.run import (
    Row,
    Steps,
    as_int,
    as_int_or_none,
    execute,
    first_column,
    operation,
    text_or_none,
)

NOWHERE = "00000000-0000-0000-0000-000000000000"  # before all ids


class UndoStep(msgspec.Struct, frozen=True):
    """A step to undo, by which function, with which stored result, and of whose job."""

    name: str
    undo: str
    result: str
    job_id: str


class SagaRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A saga as it stands. `ended_at_us`: since when the compensation `undo_id` is a job, and `state` its state;
    `steps`: how many can be undone; `anew`: the job was revived since, and has forgotten them."""

    undo_id: str
    job_id: str
    ended_at_us: int | None
    anew: bool
    state: str | None
    steps: int

    ended_at = AtOrNone("ended_at_us")


def note_undo(job_id: str, *, name: str, seq: int, undo: str, result: str, job: NewJob) -> Steps[None]:
    """Note what undoes a step; `job` is the compensation, if the job has none yet. Part of the operation that remembers
    the step, which holds the fence."""
    document = msgspec.json.encode(job).decode()
    yield from execute("put_saga", undo_id=job.id, id=job_id, job=document)
    yield from execute("put_saga_step", id=job_id, name=name, seq=seq, undo=undo, result=result)


@operation(alone=True, repeatable=True, writes="")
def undo_steps(undo_id: str) -> Steps[list[UndoStep]]:
    """What a compensation undoes, in that order."""
    rows = yield from execute("saga_steps_of", id=undo_id)
    return [UndoStep(str(row[0]), str(row[1]), str(row[2]), str(row[3])) for row in rows]


@operation(alone=True, repeatable=True, writes="")
def sagas_of(job_id: str) -> Steps[list[SagaRecord]]:
    """The sagas of a job, or the one of which it is the compensation, the newest first."""
    return [_record(row) for row in (yield from execute("sagas_of", id=job_id))]


@operation(alone=True, repeatable=True, writes="")
def failed_sagas(*, limit: int) -> Steps[list[tuple[str, str, str]]]:
    """Compensations that did not succeed: their id, whose steps they should undo, and their state."""
    return [
        (str(row[0]), str(row[1]), str(row[2])) for row in (yield from execute("failed_sagas", limit=limit))
    ]


@operation()
def purge(after: str, *, limit: int) -> Steps[Looked[str]]:
    """Remove sagas of which both jobs are gone, among so many after this one; after the last from the begin."""
    ((looked, last),) = yield from execute("sagas_after", after=after, limit=limit)
    if not looked:
        return Looked(NOWHERE)
    gone = first_column((yield from execute("purge_sagas", after=after, last=str(last))))
    return Looked(str(last) if as_int(looked) == limit else NOWHERE, as_int(looked), len(set(gone)))


def _record(row: Row) -> SagaRecord:
    return SagaRecord(
        undo_id=str(row[0]),
        job_id=str(row[1]),
        ended_at_us=as_int_or_none(row[2]),
        anew=bool(row[3]),
        state=text_or_none(row[4]),
        steps=as_int(row[5]),
    )
