"""Flows: which there are, and one of them: its graph, its jobs and for whom they wait, its stages and callbacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from fencerow.core.errors import InvalidInput
from fencerow.core.model.ids import parse_id
from fencerow.core.model.state import State
from fencerow.db.run import ask
from fencerow.db.text import amount
from fencerow.flows.looking import FlowCounts, FlowRecord
from fencerow.flows.reading import reading_flow
from fencerow.web.dashboard.counting.flows import (
    COUNTED_MAX,
    FlowEdge,
    JobOfFlow,
    around_flow,
    flow_edges_page,
    flow_groups,
    flow_jobs_page,
    flows_page,
)
from fencerow.web.dashboard.graph import DrawnGraph, drawn_graph
from fencerow.web.dashboard.grouped import grouped_flow
from fencerow.web.dashboard.screen import Act, Action, Look, PressAnswer, Screen, Section
from fencerow.web.dashboard.words import ago, span

PAGE = 50
LOOK = 2_000  # flows that are looked at for a page of those in one state, or of one name
DRAWN_MAX = 120  # jobs: more make no picture that anybody could read
EDGES_MAX = 700
EDGES_TOLD = 8  # of each job, where not all are drawn
AROUND_MAX = 50
STATES = ("running", "succeeded", "failed", "cancelled")
# What needs a person stands first.
FIRST = (State.FAILED, State.RUNNING, State.QUEUED, State.WAITING, State.CANCELLED, State.SUCCEEDED)


async def flows(look: Look) -> dict[str, Any]:
    """Two statements: a page of flows, the clock where there are none."""
    state, name = look.query.get("state", ""), look.query.get("name", "").strip()
    if state and state not in STATES:
        raise InvalidInput(
            f"state is {ascii(state)[:40]}", f"one of {', '.join(STATES)} is expected", "choose one"
        )
    narrow = bool(name) or state not in ("", "running")
    found = await look.client.arun(
        ask(
            flows_page(
                name=name or None,
                state=state or None,
                before=_place(look.query.get("before")),
                look=LOOK if narrow else PAGE + 1,
                limit=PAGE + 1,
            )
        )
    )
    shown = found.flows[:PAGE]
    older = shown[-1] if len(found.flows) > PAGE else found.last if narrow else None
    return {
        "now_us": shown[0].now_us if shown else await look.now_us(),
        "flows": shown,
        "state": state,
        "name": name,
        "states": STATES,
        "older": None if older is None else f"{older.submitted_at_us}.{older.id}",
        "is_first": not look.query.get("before"),
        "looked": LOOK if narrow and found.last is not None else None,
        "most": COUNTED_MAX,
    }


def _place(text: str | None) -> tuple[int, str] | None:
    """Where a page begins: behind a flow, which is named by its instant and id.

    Raises:
        InvalidInput: it is no such place.
    """
    if not text:
        return None
    at, _, flow_id = text.partition(".")
    if not (at.isascii() and at.isdigit() and len(at) <= 16):
        raise InvalidInput(
            f"before is {ascii(text)[:60]}", "the end of a page of flows is expected", "begin anew"
        )
    return int(at), parse_id(flow_id)


async def flow(look: Look) -> dict[str, Any]:
    """Five statements: the flow, its counts, a page of its jobs, their edges, what is around it."""
    client, flow_id = look.client, parse_id(look.params["id"])
    state, after = look.query.get("state", ""), _after(look.query.get("after"))
    record = await client.arun(reading_flow(flow_id))
    groups = await client.arun(ask(flow_groups(flow_id)))
    is_whole = not state and after < 0 and record.jobs <= DRAWN_MAX
    found = await client.arun(
        ask(
            flow_jobs_page(
                flow_id, after=after, state=_state(state), limit=DRAWN_MAX if is_whole else PAGE + 1
            )
        )
    )
    jobs = found if is_whole else found[:PAGE]
    each = DRAWN_MAX if is_whole else EDGES_TOLD
    edges = await client.arun(ask(flow_edges_page([job.id for job in jobs], each=each, limit=EDGES_MAX + 1)))
    is_drawn = is_whole and sum(map(len, edges.values())) <= EDGES_MAX
    around = await client.arun(ask(around_flow(flow_id, limit=AROUND_MAX + 1)))
    now_us = record.now_us
    return {
        "now_us": now_us,
        "flow": record,
        "counts": counts_of(record, groups.counts),
        "counted": groups.counts.total,
        "levels": groups.levels,
        "unseen": groups.unseen,
        "picture": _picture(jobs, edges) if is_drawn else None,
        "grouped": None if is_drawn else grouped_flow(groups),
        "jobs": _sorted(jobs) if is_whole else jobs,
        "edges": edges,
        "told": EDGES_TOLD,
        "now": {job.id: told_now(job, edges.get(job.id, ()), now_us) for job in jobs},
        "state": state,
        "next": jobs[-1].place if not is_whole and len(found) > PAGE else None,
        "is_first": after < 0,
        "around": around,
        "shown": AROUND_MAX,
        "revivable": record.failed + record.cancelled,
    }


def counts_of(flow: FlowRecord, counted: FlowCounts) -> FlowCounts:
    """How many of its jobs have ended is known of all of them, and how the others stand of those that were counted."""
    return msgspec.structs.replace(
        counted,
        succeeded=flow.jobs - flow.live - flow.failed - flow.cancelled,
        failed=flow.failed,
        cancelled=flow.cancelled,
    )


def _state(text: str) -> str | None:
    if not text:
        return None
    if text not in {each.value for each in State}:
        raise InvalidInput(f"state is {ascii(text)[:40]}", "a state of jobs is expected", "choose one")
    return text


def _after(text: str | None) -> int:
    if not text:
        return -1
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise InvalidInput(f"after is {ascii(text)[:40]}", "a place in the flow is expected", "begin anew")
    return int(text)


def _sorted(jobs: Sequence[JobOfFlow]) -> list[JobOfFlow]:
    return sorted(jobs, key=lambda each: (FIRST.index(each.state), each.place))


def _picture(
    jobs: Sequence[JobOfFlow], edges: Mapping[str, Sequence[FlowEdge]]
) -> tuple[DrawnGraph, list[tuple[FlowEdge, str]]]:
    """Where all boxes stand, and each line with its path: those that are still open last, above the others."""
    drawn = drawn_graph(
        {each.id: each.level for each in jobs},
        [(each.before_id, each.job_id) for found in edges.values() for each in found],
    )
    lines = [
        (each, drawn.paths[each.before_id, each.job_id])
        for found in edges.values()
        for each in found
        if (each.before_id, each.job_id) in drawn.paths
    ]
    return drawn, sorted(lines, key=lambda line: line[0].state is None)


def told_now(job: JobOfFlow, edges: Sequence[FlowEdge], now_us: int) -> str:
    """How a job stands, in a few words."""
    match job.state:
        case State.WAITING if edges and edges[0].open:
            first = edges[0]
            return f"after {first.before}" if first.jobs == 1 else f"needs {first.open} more of {first.jobs}"
        case State.WAITING:
            return "waits for its turn" if job.gate else "suspended"
        case State.QUEUED if job.run_at_us is not None:
            return f"due {ago(job.run_at_us, now_us)}" if job.run_at_us > now_us else "due"
        case State.RUNNING if job.claimed_at_us is not None:
            return f"for {span((now_us - job.claimed_at_us) / 1e6)}"
        case State.FAILED if isinstance(job.error, dict) and job.error.get("type"):
            return str(job.error["type"])
        case _:
            return ago(job.ended_at_us, now_us) if job.ended_at_us is not None else job.state.value


async def cancel(act: Act) -> PressAnswer:
    """Cancel what of it has not ended."""
    done = await act.client.flows.handle(act.params["id"]).acancel(reason=act.reason)
    if not done.cancelled and not done.asked:
        return PressAnswer("All jobs of the flow have ended already. Nothing was changed.", changed=False)
    said = f"{amount(done.cancelled, 'job')} cancelled"
    if done.asked:
        said += f", and {amount(done.asked, 'job')} that workers run asked to stop"
    return PressAnswer(f"The flow is cancelled: {said}.")


async def revive(act: Act) -> PressAnswer:
    """Run again what of it failed or was cancelled."""
    done = await act.client.flows.handle(act.params["id"]).arevive(reason=act.reason)
    left = f" {amount(done.left, 'job')} were left, as others move them: press again." if done.left else ""
    return PressAnswer(
        f"{amount(done.queued, 'job')} queued again, and {done.waiting} that wait for these.{left}"
    )


ACTIONS = (Action("/flows/{id}/cancel", cancel), Action("/flows/{id}/revive", revive))
SCREENS = (
    Screen("flows", "/flows", "Flows", flows, section=Section.WORK, place=60, key="f"),
    Screen("flow", "/flows/{id}", "Flow", flow, place=61, actions=ACTIONS),
)
