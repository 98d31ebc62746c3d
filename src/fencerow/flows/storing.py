"""A flow is stored whole: its jobs, who waits for whom, and its callbacks, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from fencerow.core.model.job import NewJob
from fencerow.core.model.submission import Submission
from fencerow.core.store import store
from fencerow.core.store.notes import hold_fence
from fencerow.core.store.suspending import suspend_new
from fencerow.core.worker.attempt import lease_lost
from fencerow.core.worker.follow_ups import StoredTogether
from fencerow.db.run import Steps, execute, operation
from fencerow.flows.errors import FlowConflict
from fencerow.flows.graph import Policy
from fencerow.steps.memory import Fencing

TERM: Final = "flows"  # the name of the wing: what the first job of a flow that follows another job brings


class Member(msgspec.Struct, frozen=True, gc=False):
    """A job of a flow: see the table `flow_jobs`."""

    job_id: str
    name: str
    job_name: str
    place: int
    level: int
    stage: bool = False
    is_read: bool = False


class Edge(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """`job_id` waits for the end of `before_id`."""

    job_id: str
    before_id: str
    policy: Policy


class Callback(msgspec.Struct, frozen=True, array_like=True):
    """A job that is made once it is known how the flow ends: `outcome` is "done", "succeeded" or "failed"."""

    job_id: str
    outcome: str
    job: NewJob


class PlannedFlow(msgspec.Struct, frozen=True):
    """All that is stored of a flow. `jobs` are its members' jobs, in the same order. `submit_id`: drawn once by whoever
    submits it, while other ids follow from its key."""

    id: str
    name: str
    digest: str
    submit_id: str
    jobs: Sequence[NewJob]
    members: Sequence[Member]
    edges: Sequence[Edge]
    callbacks: Sequence[Callback]

    @property
    def ready(self) -> list[NewJob]:
        """Those that wait for nobody."""
        return [job for job, member in zip(self.jobs, self.members, strict=True) if member.level == 0]

    @property
    def queues(self) -> list[str]:
        """Those to which its jobs and its callbacks go, sorted."""
        return sorted({job.template.queue for job in (*self.jobs, *(each.job for each in self.callbacks))})

    @property
    def held(self) -> list[str]:
        """The ids of those that wait."""
        return [member.job_id for member in self.members if member.level > 0]


@operation(repeatable=True)
def submit_flow(flow: PlannedFlow, *, actor: str | None, copies: bool = False) -> Steps[bool]:
    """Store a flow, unless it was stored before; returns whether this submit stored it, now or by an earlier try. All
    of it is one transaction.

    Waits for a concurrent submit under the same id. May be repeated: the row of the flow is the first that is written,
    and who finds it there writes nothing. `copies`: the connection is one of ours, so that many jobs may go by COPY.

    Raises:
        FlowConflict: what was stored under this id is another flow. Nothing is stored.
        FencerowError: a job names a limit that nobody defined. Nothing is stored.
    """
    made = yield from execute(
        "put_flow",
        id=flow.id,
        flow=flow.name,
        digest=flow.digest,
        submit_id=flow.submit_id,
        jobs=len(flow.jobs),
        queues=flow.queues,
        actor=actor,
    )
    if not made:
        return (yield from _is_own(flow))
    insert = store.submit_by_copy if copies else store.submit_gated
    yield from insert(flow.jobs).steps()
    if flow.held:
        yield from suspend_new(flow.held)
    edges = _document(flow.edges) if flow.edges else None
    yield from _put_rest(
        flow.id, _document(flow.members), edges, _document(flow.callbacks) if flow.callbacks else None
    )
    return True


@operation(repeatable=True)
def submit_flow_within(
    flow: PlannedFlow, fence: Fencing, *, actor: str | None, copies: bool = False
) -> Steps[bool]:
    """`submit_flow` by an attempt that runs the flow within itself. Its job's row is locked first.

    Raises:
        LeaseLost: the attempt no longer holds its job, or that is gone. Nothing is stored. And as `submit_flow`.
    """
    if (yield from hold_fence(fence.id, holder=fence.holder, attempt=fence.attempt).steps()) is None:
        raise lease_lost(fence.id, fence.attempt)
    return (yield from submit_flow(flow, actor=actor, copies=copies).steps())


def as_follow_up(flow: PlannedFlow, *, actor: str | None) -> StoredTogether:
    """A flow that is stored with the success of an attempt: its first job brings what is written beside the jobs."""
    beside = {
        "id": flow.id,
        "name": flow.name,
        "digest": flow.digest,
        "submit_id": flow.submit_id,
        "actor": actor,
        "jobs": len(flow.jobs),
        "queues": flow.queues,
        "held": flow.held,
        "members": _document(flow.members),
        "edges": _document(flow.edges) if flow.edges else None,
        "callbacks": _document(flow.callbacks) if flow.callbacks else None,
    }
    first, *others = flow.jobs
    first = msgspec.structs.replace(first, terms={**(first.terms or {}), TERM: beside})
    size = len(msgspec.json.encode(beside))
    return StoredTogether(flow.id, [Submission(job) for job in (first, *others)], size)


def store_beside(jobs: Sequence[NewJob]) -> Steps[None]:
    """Write what such first jobs bring, in the transaction of their insert, after it. A flow that is there stays."""
    for job in jobs:
        given: dict[str, Any] = (job.terms or {})[TERM]
        made = yield from execute(
            "put_flow",
            id=given["id"],
            flow=given["name"],
            digest=given["digest"],
            submit_id=given["submit_id"],
            jobs=given["jobs"],
            queues=given["queues"],
            actor=given["actor"],
        )
        if made:
            if given["held"]:
                yield from suspend_new(given["held"])
            yield from _put_rest(given["id"], given["members"], given["edges"], given["callbacks"])


def _put_rest(flow_id: str, members: str, edges: str | None, callbacks: str | None) -> Steps[None]:
    yield from execute("put_flow_jobs", id=flow_id, given=members)
    if edges is not None:
        yield from execute("put_flow_edges", id=flow_id, edges=edges)
    if callbacks is not None:
        yield from execute("put_flow_callbacks", id=flow_id, callbacks=callbacks)


def _is_own(flow: PlannedFlow) -> Steps[bool]:
    """Whether what is there was stored by this submit.

    Raises:
        FlowConflict: it is another flow.
    """
    rows = yield from execute("read_digest", id=flow.id)
    if rows and rows[0][0] != flow.digest:
        raise FlowConflict(
            f"another flow was submitted under the key of flow {flow.name!r}",
            f"flow {flow.id} has other jobs, arguments or edges",
            "use another key, or submit the same flow",
        )
    return bool(rows) and rows[0][1] == flow.submit_id


def _document(given: Sequence[msgspec.Struct]) -> str:
    return msgspec.json.encode(given).decode()
