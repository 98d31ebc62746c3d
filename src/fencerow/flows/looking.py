"""Looks at flows: how they stand, their jobs, what ended of them. Nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from fencerow.core.model.job import At, AtOrNone
from fencerow.core.model.state import State
from fencerow.core.store.decoding import whole_or_none
from fencerow.db.run import Param, Row, Steps, as_int, execute, first_column, operation, text_or_none

LATEST_US = 2**53  # later than every submit
ALL = 1_000_000
NAMES_MAX = 5
LAST = "ffffffff-ffff-ffff-ffff-ffffffffffff"


class FlowCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs of a flow stand in which state, while it runs and afterwards."""

    waiting: int = 0
    queued: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0

    @property
    def total(self) -> int:
        """How many jobs the flow has."""
        return self.waiting + self.queued + self.running + self.ended

    @property
    def ended(self) -> int:
        """How many have ended, in any way."""
        return self.succeeded + self.failed + self.cancelled


class FlowPlace(NamedTuple):
    """The place of a flow in a list: where the page behind it begins."""

    submitted_at_us: int
    id: str


class FlowRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A flow as it stands. `live`: how many of its jobs have not ended; `now_us`: the time of the look."""

    id: str
    name: str
    jobs: int
    submitted_at_us: int
    submitted_by: str | None
    cancel_requested_at_us: int | None
    cancel_requested_by: str | None
    ended_at_us: int | None
    live: int
    failed: int
    cancelled: int
    now_us: int

    submitted_at = At("submitted_at_us")
    cancel_requested_at = AtOrNone("cancel_requested_at_us")
    ended_at = AtOrNone("ended_at_us")
    now = At("now_us")

    @property
    def state(self) -> str:
        """`running` until all its jobs have ended; then `failed` if one failed, `cancelled` if one was cancelled, else
        `succeeded`."""
        if self.live or self.ended_at_us is None:
            return "running"
        if self.failed:
            return "failed"
        return "cancelled" if self.cancelled else "succeeded"


class FlowJobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A job of a flow: its name there, its job's, how it stands; and for whom it waits, where that was asked."""

    id: str
    name: str
    job: str
    place: int
    level: int
    stage: bool
    state: State
    ended_at_us: int | None
    error_text: str | None = None
    result_text: str | None = None
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    ended_at = AtOrNone("ended_at_us")


class CallbackRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A callback of a flow: the job that is made, after which outcome, since when it is there."""

    id: str
    outcome: str
    job: str
    made_at_us: int | None
    trouble: str | None

    made_at = AtOrNone("made_at_us")


@operation(alone=True, repeatable=True, writes="")
def read_flow(flow_id: str) -> Steps[FlowRecord | None]:
    """A flow as it stands; None: there is none."""
    rows = yield from execute("read_flow", id=flow_id)
    return flow_record(rows[0]) if rows else None


@operation(alone=True, repeatable=True, writes="")
def list_flows(
    *,
    live: bool = False,
    name: str | None = None,
    before: FlowRecord | FlowPlace | None = None,
    limit: int,
) -> Steps[list[FlowRecord]]:
    """Flows, the newest first. `before`: the last one of the page before, or its place."""
    rows = yield from execute("list_flows", **page_of(live, name, before, limit))
    return list(map(flow_record, rows))


def page_of(
    live: bool, name: str | None, before: FlowRecord | FlowPlace | None, limit: int
) -> dict[str, Param]:
    """What the statements that list flows read of a page."""
    return {
        "before_us": LATEST_US if before is None else before.submitted_at_us,
        "before": LAST if before is None else before.id,
        "live": int(live),
        "flow": name,
        "limit": limit,
    }


@operation(alone=True, repeatable=True, writes="")
def flow_of_job(job_id: str) -> Steps[str | None]:
    """The id of the flow of this job, or of this callback; None: it has none."""
    found = first_column((yield from execute("flow_of_job", id=job_id)))
    return found[0] if found else None


@operation(alone=True, repeatable=True, writes="")
def count_flow_jobs(flow_id: str) -> Steps[FlowCounts]:
    """How many jobs of a flow stand in which state."""
    rows = yield from execute("count_flow_jobs", id=flow_id)
    return FlowCounts(**{str(state): as_int(count) for state, count in rows})


@operation(repeatable=True, writes="")
def read_flow_jobs(flow_id: str, *, after: int = -1, limit: int) -> Steps[list[FlowJobRecord]]:
    """Jobs of a flow, each behind those it waits for, with their names; without results."""
    rows = yield from execute("read_flow_jobs", id=flow_id, after=after, limit=limit)
    found = [flow_job_record(row) for row in rows]
    edges: dict[str, list[Row]] = {}
    for row in (yield from execute("read_flow_edges", ids=[each.id for each in found])):
        edges.setdefault(str(row[0]), []).append(row)
    return [_with_edges(each, edges) for each in found]


@operation(alone=True, repeatable=True, writes="")
def read_flow_job(flow_id: str, name: str) -> Steps[FlowJobRecord | None]:
    """One job of a flow by its name there; None: it has none of that name."""
    rows = yield from execute("read_flow_job", id=flow_id, member=name)
    return flow_job_record(rows[0]) if rows else None


@operation(alone=True, repeatable=True, writes="")
def read_newest_stage(flow_id: str) -> Steps[FlowJobRecord | None]:
    """The last stage of a flow that has a result; None: no stage has one."""
    rows = yield from execute("read_newest_stage", id=flow_id)
    return flow_job_record(rows[0]) if rows else None


@operation(alone=True, repeatable=True, writes="")
def read_flow_inputs(job_id: str) -> Steps[list[FlowJobRecord]]:
    """Those for which a job waited, with their results and errors; of a callback all jobs of its flow."""
    return list(map(flow_job_record, (yield from execute("read_flow_inputs", id=job_id))))


@operation(alone=True, repeatable=True, writes="")
def awaited_in_flow(job_id: str) -> Steps[tuple[str, list[str]] | None]:
    """The flow that a suspended job waits in, and the names of some for which it waits: none where it waits for all of
    the flow inside of its handler. None: it waits for no flow."""
    rows = yield from execute("awaited_in_flow", id=job_id, limit=NAMES_MAX)
    return (str(rows[0][0]), [str(row[1]) for row in rows if row[1] is not None]) if rows else None


@operation(alone=True, repeatable=True, writes="")
def read_flow_results(flow_id: str) -> Steps[list[FlowJobRecord]]:
    """All jobs of a flow with their results and errors."""
    rows = yield from execute("read_flow_jobs", id=flow_id, after=-1, limit=ALL)
    return list(map(flow_job_record, rows))


@operation(alone=True, repeatable=True, writes="")
def read_flow_callbacks(flow_id: str) -> Steps[list[CallbackRecord]]:
    """The callbacks of a flow."""
    return [
        CallbackRecord(
            id=str(row[0]),
            outcome=str(row[1]),
            job=str(msgspec.json.decode(str(row[2]))["name"]),
            made_at_us=whole_or_none(row[3]),
            trouble=text_or_none(row[4]),
        )
        for row in (yield from execute("read_flow_callbacks", id=flow_id))
    ]


def flow_record(row: Row) -> FlowRecord:
    """A row with the columns of a flow."""
    return FlowRecord(
        id=str(row[0]),
        name=str(row[1]),
        jobs=as_int(row[2]),
        submitted_at_us=whole_or_none(row[3]) or 0,
        submitted_by=text_or_none(row[4]),
        cancel_requested_at_us=whole_or_none(row[5]),
        cancel_requested_by=text_or_none(row[6]),
        ended_at_us=whole_or_none(row[7]),
        live=as_int(row[8]),
        failed=as_int(row[9]),
        cancelled=as_int(row[10]),
        now_us=as_int(row[11]),
    )


def flow_job_record(row: Row) -> FlowJobRecord:
    """A row with the columns of a job in a flow."""
    return FlowJobRecord(
        id=str(row[0]),
        name=str(row[1]),
        job=str(row[2]),
        place=as_int(row[3]),
        level=as_int(row[4]),
        stage=bool(row[5]),
        state=State(str(row[6])),
        ended_at_us=whole_or_none(row[7]),
        error_text=text_or_none(row[8]),
        result_text=text_or_none(row[9]),
    )


def _with_edges(each: FlowJobRecord, edges: Mapping[str, Sequence[Row]]) -> FlowJobRecord:
    own = [(str(row[1]), row[2]) for row in edges.get(each.id, ())]
    return msgspec.structs.replace(
        each,
        result_text=None,
        needs=tuple(name for name, policy in own if policy == "needs"),
        after=tuple(name for name, policy in own if policy == "after"),
    )
