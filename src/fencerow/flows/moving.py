"""Cancel and run again a whole flow, a portion at a time: neither holds the flow while it asks its jobs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fencerow.core.client.moving import check_reason
from fencerow.core.db.run import Procedure, Steps, WakeUp, as_int, ask, execute, first_column, operation
from fencerow.core.model.wakeup import FlowMoved, encode
from fencerow.core.store.attempts import Requeued
from fencerow.core.store.hints import hints_of_queued
from fencerow.core.store.many import revive_many
from fencerow.core.store.moves import CANCEL_PATIENCE_S, too_soon
from fencerow.flows.errors import FlowEnded
from fencerow.flows.reading import reading_flow
from fencerow.operators.many import BATCH, CancelMany, JobDone, moving

BEHIND_ALL = 2**31 - 1
MOVED = encode(FlowMoved())


class FlowCancelAnswer(msgspec.Struct, frozen=True):
    """What a cancel of a flow did: jobs that never run again, and jobs whose workers were asked to stop them."""

    cancelled: int
    asked: int


class FlowReviveAnswer(msgspec.Struct, frozen=True):
    """What a revive of a flow did: jobs that run again at once, jobs that wait for these, and jobs that were left, for
    somebody else moved them at the same time: ask again."""

    queued: int
    waiting: int
    left: int


class FlowPortion(msgspec.Struct, frozen=True):
    """Some jobs of a flow, those behind first, and the place before which the next portion begins."""

    ids: list[str]
    before: int


class RevivedPortion(msgspec.Struct, frozen=True):
    """What became of a portion: those that are queued, those that wait; `gone`: a job that cannot be revived."""

    portion: FlowPortion
    queued: list[Requeued]
    waiting: list[str]
    gone: str | None = None


@operation(alone=True, repeatable=True)
def ask_flow_cancel(flow_id: str, *, actor: str | None) -> Steps[bool]:
    """Note that the flow is to be cancelled: from then on none of its jobs is woken. False: it is over."""
    return bool((yield from execute("ask_flow_cancel", id=flow_id, actor=actor)))


@operation(alone=True, repeatable=True, writes="")
def live_flow_jobs(flow_id: str, *, before: int, limit: int) -> Steps[FlowPortion]:
    """Jobs of a flow that have not ended, those behind first."""
    rows = yield from execute("live_flow_jobs", id=flow_id, before=before, limit=limit)
    return FlowPortion(first_column(rows), as_int(rows[-1][1]) if rows else 0)


@operation(patience_s=CANCEL_PATIENCE_S)
def revive_portion(
    flow_id: str, *, before: int, limit: int, actor: str | None, reason: str | None
) -> Steps[RevivedPortion]:
    """Run jobs of a flow again that failed or were cancelled, those behind first; each waits for those before it again.

    Locks the flow: nobody wakes its jobs meanwhile. Then their rows, for which it waits: one that was left would let
    those behind it wait. What it did and did not commit is done once more by repeating it.

    Raises:
        RevivedTooSoon: another job must end before one of them. Nothing is changed.
        Busy: a transaction of somebody's locks one of them. Nothing is changed; try again.
    """
    yield from execute("lock_flow", id=flow_id)
    rows = yield from execute("flow_jobs_to_revive", id=flow_id, before=before, limit=limit)
    found = FlowPortion(first_column(rows), as_int(rows[-1][1]) if rows else 0)
    yield from execute("lock_flow_jobs_to_revive", ids=found.ids)
    gone = first_column((yield from execute("gone_flow_jobs", id=flow_id)))
    if gone or not found.ids:
        return RevivedPortion(found, [], [], gone[0] if gone else None)
    if before == BEHIND_ALL:
        for job_id, first in (yield from execute("flow_jobs_too_soon", id=flow_id, ids=[])):
            raise too_soon(str(job_id), str(first))
    queued = yield from revive_many(found.ids, actor=actor, reason=reason).steps()
    revived = [each.id for each in queued]
    if not revived:
        return RevivedPortion(found, [], [])
    yield from execute("reopen_flow", id=flow_id)
    yield from execute("reopen_flow_edges", ids=revived)
    held = first_column((yield from execute("hold_flow_jobs", ids=revived, actor=actor)))
    yield from execute("unwake_flow_jobs", ids=held)
    waiting = set(held)
    return RevivedPortion(found, [each for each in queued if each.id not in waiting], held)


def cancelling_flow(flow_id: str, actor: str | None, reason: str | None) -> Procedure[FlowCancelAnswer]:
    """Cancel all jobs of a flow that have not ended, those behind first.

    Raises:
        FlowEnded: all have ended. FlowNotFound: there is no such flow.
    """
    check_reason(reason)
    if not (yield from ask(ask_flow_cancel(flow_id, actor=actor))):
        found = yield from reading_flow(flow_id)
        raise FlowEnded(f"flow {flow_id} has ended: {found.state}", "there is nothing to cancel", "leave it")
    done: list[JobDone] = []
    before = BEHIND_ALL
    while (portion := (yield from ask(live_flow_jobs(flow_id, before=before, limit=BATCH)))).ids:
        yield from moving(portion.ids, CancelMany(actor, reason), done)
        before = portion.before
    yield WakeUp([MOVED])
    return FlowCancelAnswer(_count(done, "cancelled"), _count(done, "asked to stop"))


def reviving_flow(flow_id: str, actor: str | None, reason: str | None) -> Procedure[FlowReviveAnswer]:
    """Run all jobs of a flow again that failed or were cancelled, in the order in which they wait for one another.

    Raises:
        FlowEnded: none failed or was cancelled, or one of those is gone. Nothing was changed.
        RevivedTooSoon: the compensation of one has not ended. Nothing was changed.
        Busy: somebody has locked one of them. Those of its portion and before it were not revived; ask again.
        FlowNotFound: there is no such flow.
    """
    check_reason(reason)
    queued = waiting = asked = 0
    before = BEHIND_ALL
    while True:
        done = yield from ask(revive_portion(flow_id, before=before, limit=BATCH, actor=actor, reason=reason))
        if done.gone is not None or not done.portion.ids:
            break
        queued, waiting = queued + len(done.queued), waiting + len(done.waiting)
        asked, before = asked + len(done.portion.ids), done.portion.before
        yield WakeUp(hints_of_queued(done.queued))
    if not asked:
        found = yield from reading_flow(flow_id)
        raise _not_revivable(flow_id, found.state, done.gone)
    yield WakeUp([MOVED])
    return FlowReviveAnswer(queued, waiting, asked - queued - waiting)


def _not_revivable(flow_id: str, state: str, gone: str | None) -> FlowEnded:
    if gone is not None:
        return FlowEnded(
            f"flow {flow_id} cannot be run again: job {gone} of it is gone",
            "retention or a person removed it, so those behind it would wait for ever",
            "submit the flow again",
        )
    return FlowEnded(
        f"flow {flow_id} has nothing to run again: {state}",
        "no job of it failed or was cancelled",
        "leave it",
    )


def _count(done: Sequence[JobDone], outcome: str) -> int:
    return sum(each.outcome == outcome and each.error is None for each in done)
