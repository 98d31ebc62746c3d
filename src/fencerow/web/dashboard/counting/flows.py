"""Flows as pages show them: a page of them; of one its counts, a page of its jobs, their edges, what is around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from fencerow.core.model.state import FINAL, State
from fencerow.core.store.decoding import read_or
from fencerow.db.run import Param, Row, Steps, as_int, as_int_or_none, execute, operation, text_or_none
from fencerow.flows.looking import LAST, LATEST_US, FlowCounts, FlowRecord, flow_record

COUNTED_MAX = 1_000  # of each flow of a page, and of each kind
COLUMNS_MAX = 24
GROUPS_MAX = 400
GROUPED_MAX = 20_000  # jobs of a flow, the first by their places
LOOKED_MAX = 2_000  # of the jobs of a flow that wait for nobody and have not ended


class FlowsPage(msgspec.Struct, frozen=True):
    """Some flows, and the last one that was looked at for them; None: no more is behind it."""

    flows: list[FlowRecord]
    last: FlowRecord | None


class FlowGroup(msgspec.Struct, frozen=True):
    """Jobs of a flow in one column, of one name and state."""

    column: int
    name: str
    state: State
    jobs: int


class FlowGroups(msgspec.Struct, frozen=True):
    """The first `GROUPED_MAX` jobs of a flow by state, and in groups; `levels` are in one column. Of many groups the
    last ones are left out.

    Of those that were woken and have not ended `LOOKED_MAX` are looked at; `unseen` others count as queued.
    """

    counts: FlowCounts
    groups: list[FlowGroup]
    levels: int
    unseen: int


class JobOfFlow(msgspec.Struct, frozen=True, kw_only=True):
    """A job of a flow. Of one that has ended only what the flow keeps is told."""

    id: str
    name: str
    job: str
    place: int
    level: int
    stage: bool
    state: State
    ended_at_us: int | None
    error: Any
    run_at_us: int | None
    claimed_at_us: int | None
    attempt: int | None
    queue: str | None
    gate: str | None


class FlowEdge(msgspec.Struct, frozen=True, kw_only=True):
    """For whom one job waits, and how that one ended, as far as it was told. `jobs`: for how many it waits in all; of
    `open` of them no end was told."""

    job_id: str
    before_id: str
    before: str
    policy: str
    state: State | None
    jobs: int
    open: int


class AroundFlow(msgspec.Struct, frozen=True):
    """A stage, a callback, or a job that waits for the whole flow. `state` of a callback: the outcome it is made of."""

    id: str
    name: str
    state: str
    at_us: int | None
    trouble: str | None


@operation(alone=True, repeatable=True, writes="")
def flows_page(
    *, name: str | None, state: str | None, before: tuple[int, str] | None, look: int, limit: int
) -> Steps[FlowsPage]:
    """Flows, the newest first, of the next `look` that there are before an instant and an id."""
    before_us, before_id = before or (LATEST_US, LAST)
    params = {
        "name": name, "state": state, "before_us": before_us, "before": before_id, "look": look, "limit": limit,
        "most": COUNTED_MAX + 1,
    }  # fmt: skip
    if state == "running":
        rows = yield from execute("live_flows_page", **params)
    else:
        rows = yield from execute("flows_page", **params)
    last = next((flow_record(row) for row in rows if as_int(row[12]) == look), None)
    return FlowsPage([flow_record(row) for row in rows if not as_int(row[12])], last)


@operation(alone=True, repeatable=True, writes="")
def flow_groups(flow_id: str) -> Steps[FlowGroups]:
    """How many jobs of a flow stand in which state, and in which groups."""
    rows = yield from execute(
        "flow_groups", id=flow_id, columns=COLUMNS_MAX, limit=GROUPS_MAX, look=GROUPED_MAX, most=LOOKED_MAX
    )
    return FlowGroups(
        FlowCounts(**{str(row[2]): as_int(row[3]) for row in rows if row[1] is None}),
        [_group(row) for row in rows if row[1] is not None],
        as_int(rows[0][4]) if rows else 1,
        as_int(rows[0][5]) if rows else 0,
    )


@operation(alone=True, repeatable=True, writes="")
def flow_jobs_page(flow_id: str, *, after: int, state: str | None, limit: int) -> Steps[list[JobOfFlow]]:
    """Jobs of a flow behind a place, all or those in one state."""
    params: dict[str, Param] = {"id": flow_id, "after": after, "state": state, "limit": limit}
    if state in FINAL:
        return list(map(_job, (yield from execute("ended_flow_jobs_page", **params))))
    return list(map(_job, (yield from execute("flow_jobs_page", **params))))


@operation(alone=True, repeatable=True, writes="")
def flow_edges_page(ids: Sequence[str], *, each: int, limit: int) -> Steps[Mapping[str, list[FlowEdge]]]:
    """For whom these jobs wait, by their ids: of each at most so many, those first that are still open."""
    found: dict[str, list[FlowEdge]] = {}
    for row in (yield from execute("flow_edges_page", ids=list(ids), each=each, limit=limit)):
        found.setdefault(str(row[0]), []).append(_edge(row))
    return found


@operation(alone=True, repeatable=True, writes="")
def around_flow(flow_id: str, *, limit: int) -> Steps[Mapping[str, list[AroundFlow]]]:
    """What else belongs to a flow, by `stage`, `callback` and `parent`: of each at most so many."""
    found: dict[str, list[AroundFlow]] = {"stage": [], "callback": [], "parent": []}
    for row in (yield from execute("around_flow", id=flow_id, limit=limit)):
        at_us = as_int_or_none(row[4])
        found[str(row[0])].append(
            AroundFlow(str(row[1]), str(row[2]), str(row[3]), at_us, text_or_none(row[5]))
        )
    return found


def _group(row: Row) -> FlowGroup:
    return FlowGroup(as_int(row[0]), str(row[1]), State(str(row[2])), as_int(row[3]))


def _job(row: Row) -> JobOfFlow:
    return JobOfFlow(
        id=str(row[0]), name=str(row[1]), job=str(row[2]), place=as_int(row[3]), level=as_int(row[4]),
        stage=bool(row[5]), state=State(str(row[6])), ended_at_us=as_int_or_none(row[7]),
        error=read_or(None, Any, str(row[8] or "null")), run_at_us=as_int_or_none(row[9]),
        claimed_at_us=as_int_or_none(row[10]), attempt=as_int_or_none(row[11]), queue=text_or_none(row[12]),
        gate=text_or_none(row[13]),
    )  # fmt: skip


def _edge(row: Row) -> FlowEdge:
    return FlowEdge(
        job_id=str(row[0]), before_id=str(row[1]), before=str(row[2]), policy=str(row[3]),
        state=None if row[4] is None else State(str(row[4])), jobs=as_int(row[5]), open=as_int(row[6]),
    )  # fmt: skip
