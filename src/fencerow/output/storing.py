"""What the database keeps of the output of jobs: written under the fence of the attempt, and read by anybody."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fencerow.core.model.state import FINAL, State
from fencerow.core.store.notes import check_fence
from fencerow.db.removal import Looked
from fencerow.db.run import Row, Steps, as_int, execute, operation
from fencerow.output.model import ChunkGroup

NOWHERE = "00000000-0000-0000-0000-000000000000"  # before all ids


class Begun(msgspec.Struct, frozen=True):
    """Whether the job is ephemeral, and how many chunks and bytes its earlier attempts have emitted."""

    ephemeral: bool
    chunks: int
    bytes: int


class Emitting(msgspec.Struct, frozen=True):
    """How a job stands whose output is followed. `last`: the offset of what it emitted last, where that was asked."""

    queue: str
    state: State
    attempt: int
    last: int = 0

    @property
    def is_final(self) -> bool:
        """Whether it has ended: nothing more is emitted then, unless somebody revives it."""
        return self.state in FINAL


class Output(msgspec.Struct, frozen=True):
    """Some groups of a job's output, and how the job stood before they were read."""

    job: Emitting
    groups: list[ChunkGroup]


class AttemptPart(msgspec.Struct, frozen=True):
    """What one attempt has emitted."""

    attempt: int
    first_us: int
    last_us: int
    chunks: int
    bytes: int


@operation(alone=True, repeatable=True, writes="")
def begin(job_id: str, *, holder: str, attempt: int) -> Steps[Begun | None]:
    """What the attempt must know before it emits; None: it no longer holds the job."""
    rows = yield from execute("begin_output", id=job_id, holder=holder, attempt=attempt)
    return Begun(bool(rows[0][0]), as_int(rows[0][1]), as_int(rows[0][2])) if rows else None


@operation(repeatable=True)
def write(job_id: str, group: ChunkGroup, *, holder: str) -> Steps[bool]:
    """Write a group of the attempt's chunks; false: it no longer holds the job. What it has written before stands."""
    rows = yield from execute(
        "write_output",
        id=job_id,
        holder=holder,
        attempt=group.attempt,
        last=group.last,
        chunks=group.chunks,
        bytes=len(group.data),
        data=group.data,
    )
    if rows:
        return True
    # Stale or known: a later statement tells.
    return (yield from check_fence(job_id, holder=holder, attempt=group.attempt).steps()) is not None


@operation(repeatable=True, writes="")
def read_output(job_id: str, after: int, *, limit: int) -> Steps[Output | None]:
    """The next groups with chunks behind this offset, at most `limit`; None: the job is nowhere.

    How it stands is read first: what is found after its end is all there is.
    """
    jobs = yield from execute("emitting_job", id=job_id)
    if not jobs:
        return None
    rows = yield from execute("output_after", id=job_id, after=after, limit=limit)
    queue, state, attempt = jobs[0]
    return Output(Emitting(str(queue), State(str(state)), as_int(attempt)), [_group(row) for row in rows])


@operation(alone=True, repeatable=True, writes="")
def emitting(ids: Sequence[str]) -> Steps[dict[str, Emitting]]:
    """How these jobs stand, and what they have emitted last; one that is nowhere is not in the answer."""
    rows = yield from execute("emitting_jobs", ids=list(ids))
    return {
        str(row[0]): Emitting(str(row[1]), State(str(row[2])), as_int(row[3]), as_int(row[4])) for row in rows
    }


@operation(alone=True, repeatable=True, writes="")
def parts(job_id: str) -> Steps[list[AttemptPart]]:
    """What each attempt of a job has emitted, in order."""
    rows = yield from execute("output_parts", id=job_id)
    return [AttemptPart(*map(as_int, row)) for row in rows]


@operation()
def purge(after: str, *, age_s: float, limit: int) -> Steps[Looked[str]]:
    """Remove the output of jobs that ended so long ago or are gone, among so many after this one; after the last from
    the begin."""
    ((looked, last),) = yield from execute("emitting_jobs_after", after=after, limit=limit)
    if not looked:
        return Looked(NOWHERE)
    gone = yield from execute("purge_output", after=after, last=str(last), age_s=age_s)
    ids = {str(row[0]) for row in gone}
    return Looked(str(last) if as_int(looked) == limit else NOWHERE, as_int(looked), len(ids))


def _group(row: Row) -> ChunkGroup:
    return ChunkGroup(
        last=as_int(row[0]),
        attempt=as_int(row[1]),
        chunks=as_int(row[2]),
        data=str(row[3]),
        at_us=as_int(row[4]),
    )
