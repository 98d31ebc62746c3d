"""Cancel and run again a whole flow, a portion at a time: neither holds the flow while it asks its jobs.

A cancel begins behind, so that nobody is woken whom it has yet to reach. A revive begins in front, so that nobody waits
for one whom it has yet to reach: wherever it ends, the flow goes on with what was revived, and comes to an end.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fencerow.core.client.moving import check_reason
from fencerow.core.errors import Busy, RevivedTooSoon
from fencerow.core.model.wakeup import FlowMoved, encode
from fencerow.core.store.attempts import Requeued
from fencerow.core.store.hints import hints_of_queued
from fencerow.core.store.moves import CANCEL_PATIENCE_S, too_soon
from fencerow.db.run import Procedure, Steps, WakeUp, as_int, ask, execute, first_column, operation
from fencerow.flows.errors import FlowEnded
from fencerow.flows.graph import JOBS_MAX
from fencerow.flows.reading import reading_flow
from fencerow.operators.at_once import revive_many
from fencerow.operators.many import BATCH, CancelMany, JobDone, moving

BEHIND_ALL = 2**31 - 1
BEFORE_ALL = -1
MOVED = encode(FlowMoved())


class FlowCancelAnswer(msgspec.Struct, frozen=True):
    """What a cancel of a flow did: jobs that never run again, and jobs whose workers were asked to stop them."""

    cancelled: int
    asked: int


class FlowReviveAnswer(msgspec.Struct, frozen=True):
    """What a revive of a flow did: jobs that run again at once, jobs that wait for these, and jobs that were left, as
    somebody else moved or locked some of them at the same time: ask again."""

    queued: int
    waiting: int
    left: int


class FlowPortion(msgspec.Struct, frozen=True):
    """Some jobs of a flow, those behind first, and the place before which the next portion begins."""

    ids: list[str]
    before: int


class RevivedPortion(msgspec.Struct, frozen=True):
    """What became of a portion: how many it found, behind whose place the next one begins, who is queued, who waits."""

    found: int
    after: int
    queued: list[Requeued]
    waiting: list[str]


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
    flow_id: str, *, after: int, limit: int, begun: bool, actor: str | None, reason: str | None
) -> Steps[RevivedPortion]:
    """Run jobs of a flow again that failed or were cancelled, those in front first. Each waits for those before it.

    Locks the flow: nobody wakes its jobs meanwhile. Then their rows, for which it waits. `begun`: a portion before has
    revived some. Until then all of the flow is asked whether it can be revived, afterwards this portion. What it did
    and did not commit is done once more by repeating it.

    Raises:
        RevivedTooSoon: another job must end before one of them. Nothing of the portion is changed.
        FlowEnded: one of them is gone, or the flow was cancelled since the portion before. Nothing is changed.
        Busy: a transaction of somebody's locks one of them. Nothing of the portion is changed; try again.
    """
    locked = yield from execute("lock_flow", id=flow_id)
    if begun and locked and locked[0][1]:
        raise FlowEnded(f"flow {flow_id} was cancelled", "somebody did while it was revived", "ask again")
    rows = yield from execute("flow_jobs_to_revive", id=flow_id, after=after, limit=limit)
    if not rows:
        return RevivedPortion(0, after, [], [])
    ids, last = first_column(rows), as_int(rows[-1][1])
    yield from execute("lock_flow_jobs_to_revive", ids=ids)
    yield from _refuse_what_cannot_be(flow_id, after, last if begun else BEHIND_ALL)
    queued = yield from revive_many(ids, actor=actor, reason=reason).steps()
    held = (yield from _held_again(flow_id, [each.id for each in queued], actor)) if queued else []
    waiting = set(held)
    return RevivedPortion(len(ids), last, [each for each in queued if each.id not in waiting], held)


@operation(alone=True, repeatable=True, writes="")
def count_flow_jobs_left(flow_id: str, *, after: int) -> Steps[int]:
    """How many jobs of a flow behind this place failed or were cancelled."""
    return len((yield from execute("flow_jobs_to_revive", id=flow_id, after=after, limit=JOBS_MAX)))


def _refuse_what_cannot_be(flow_id: str, after: int, last: int) -> Steps[None]:
    """The jobs between these places can be revived, all of them, or an error says why not."""
    for gone in first_column((yield from execute("gone_flow_jobs", id=flow_id, after=after, last=last))):
        raise FlowEnded(
            f"flow {flow_id} cannot be run again: job {gone} of it is gone",
            "retention or a person removed it, so those behind it would wait for ever",
            "submit the flow again",
        )
    for job_id, first in (
        yield from execute("flow_jobs_too_soon", id=flow_id, after=after, last=last, ids=[])
    ):
        raise too_soon(str(job_id), str(first))


def _held_again(flow_id: str, revived: list[str], actor: str | None) -> Steps[list[str]]:
    """Let those of these wait that wait for others; returns them. Each is woken by an end that is yet to be told."""
    yield from execute("reopen_flow", id=flow_id)
    yield from execute("reopen_flow_edges", ids=revived)
    held = first_column((yield from execute("hold_flow_jobs", ids=revived, actor=actor)))
    if held:
        yield from execute("unwake_flow_jobs", ids=held)
        yield from execute("tell_ends_before", ids=held)
    return held


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

    Each portion is one transaction. What keeps a later one from being revived is no error: the answer says what is
    left.

    Raises:
        FlowEnded: none failed or was cancelled, or one of those is gone. Nothing was changed.
        RevivedTooSoon: the compensation of one has not ended. Nothing was changed.
        Busy: somebody has locked one of the first portion. Nothing was changed; ask again.
        FlowNotFound: there is no such flow.
    """
    check_reason(reason)
    queued = waiting = found = left = 0
    after, begun = BEFORE_ALL, False
    while True:
        try:
            done = yield from ask(
                revive_portion(flow_id, after=after, limit=BATCH, begun=begun, actor=actor, reason=reason)
            )
        except (Busy, RevivedTooSoon, FlowEnded):
            if not begun:
                raise
            left = yield from ask(count_flow_jobs_left(flow_id, after=after))
            break
        if not done.found:
            break
        queued, waiting = queued + len(done.queued), waiting + len(done.waiting)
        found, after, begun = found + done.found, done.after, queued + waiting > 0
        yield WakeUp(hints_of_queued(done.queued))
    if not found:
        flow = yield from reading_flow(flow_id)
        raise FlowEnded(
            f"flow {flow_id} has nothing to run again: {flow.state}",
            "no job of it failed or was cancelled",
            "leave it",
        )
    yield WakeUp([MOVED])
    return FlowReviveAnswer(queued, waiting, found - queued - waiting + left)


def _count(done: Sequence[JobDone], outcome: str) -> int:
    return sum(each.outcome == outcome and each.error is None for each in done)
