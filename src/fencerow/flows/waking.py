"""Who goes on when jobs of a flow have ended: told to those that wait, each of which is woken or cancelled once.

Which ones go is decided here, from what the statements found; nothing but the statements decides whether it happens.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from fencerow.core.errors import FencerowError
from fencerow.core.model.job import NewJob
from fencerow.core.store import store
from fencerow.core.store.attempts import MovedJob, Requeued, archive
from fencerow.core.store.suspending import Waiter, lock_waiters, wake_locked
from fencerow.db.errors.base import line_of
from fencerow.db.run import Row, Steps, as_int, execute, first_column, operation, text_or_none

FLOWS_MAX = 50  # that one transaction moves
ENDS_MAX = 500  # that one transaction tells
LOOKED_AT = 1_000  # flows with ends to be told, to find some that nobody has locked
NIL = "00000000-0000-0000-0000-000000000000"  # before all ids
NEW_JOB = msgspec.json.Decoder(NewJob)


class FlowsWanted(NamedTuple):
    """Whether an end is to be told, whether any flow has not ended, whether a job may wait for one in its handler."""

    untold: bool
    live: bool
    awaited: bool


class LookedAt(NamedTuple):
    """A job that waits: whether one before it has not ended, and one that it needs and that did not succeed."""

    job_id: str
    waits: bool
    broken: str | None = None
    broken_state: str | None = None
    broken_id: str | None = None
    is_called_off: bool = False

    @property
    def reason(self) -> str | None:
        """Why it is never to run; None: nothing is known against it."""
        if self.is_called_off:
            return "its flow was cancelled"
        if self.broken is None:
            return None
        how = "failed" if self.broken_state == "failed" else "was cancelled"
        return f"it needs {self.broken!r} (job {self.broken_id}), which {how}"[:500]


class Decided(NamedTuple):
    """Who is woken, who is cancelled and why, and who could not be looked at as somebody else has locked it."""

    wake: list[str]
    cancel: dict[str, list[str]]
    left: set[str]


class Advanced(msgspec.Struct, frozen=True):
    """What one transaction did: jobs that were queued, jobs that were cancelled, callbacks that were made, flows
    that have ended. `more`: there may be more to do at once; `left`: some jobs were locked; `moved`: ends were told."""

    queued: list[Requeued]
    cancelled: list[MovedJob]
    made: list[NewJob]
    ended: list[str]
    more: bool = False
    left: bool = False
    moved: bool = False


NOTHING = Advanced([], [], [], [])


def decided(looked: Sequence[LookedAt], locked: Mapping[str, Waiter]) -> Decided:
    """What becomes of these. One that somebody has moved by hand (it is not suspended) is left as it is."""
    found = Decided([], {}, set())
    for each in looked:
        waiter = locked.get(each.job_id)
        if waiter is None:
            found.left.add(each.job_id)
        elif waiter.is_suspended:
            if each.reason is not None:
                found.cancel.setdefault(each.reason, []).append(each.job_id)
            elif not each.waits:
                found.wake.append(each.job_id)
    return found


@operation(alone=True, repeatable=True, writes="")
def flows_wanted() -> Steps[FlowsWanted]:
    """Whether there is anything to do."""
    ((untold, live, awaited),) = yield from execute("flows_wanted")
    return FlowsWanted(bool(untold), bool(live), bool(awaited))


@operation()
def advance(*, actor: str | None, limit: int = FLOWS_MAX) -> Steps[Advanced]:
    """Tell ends of jobs to those that wait for them, in up to `limit` flows: wake them, or cancel them.

    Locks the flows first, in sorted order, and passes over those that somebody else works on; their ends stay. Then
    locks the jobs that wait, and leaves those that a stranger has locked: these ends are told again. Repeating it does
    what is left to do. What is cancelled here has ended in turn, and is told in the next transaction.
    """
    flows = first_column((yield from execute("lock_flows", flows=LOOKED_AT, limit=limit)))
    if not flows:
        return NOTHING
    ends = first_column((yield from execute("take_flow_ends", flows=flows, limit=ENDS_MAX)))
    edges = (yield from execute("close_flow_edges", ids=ends)) if ends else []
    found = yield from _look(sorted({str(edge[0]) for edge in edges}))
    queued = yield from _wake(found.wake, actor)
    cancelled = yield from _cancel(found.cancel, actor)
    if found.left:
        again = sorted({str(before) for waits, before in edges if str(waits) in found.left})
        yield from execute("tell_again", ids=again)
    ended = first_column((yield from execute("end_flows", flows=flows)))
    made = yield from _call_back(flows)
    more = bool(cancelled) or len(ends) >= ENDS_MAX or len(flows) >= limit
    return Advanced(queued, cancelled, made, ended, more=more, left=bool(found.left), moved=bool(ends))


def _look(ids: Collection[str]) -> Steps[Decided]:
    """Lock those that wait, then look in a later statement: what the lock waited for is seen there."""
    if not ids:
        return Decided([], {}, set())
    waiters = yield from lock_waiters(list(ids), skip_locked=True)
    rows = yield from execute("look_at_flow_jobs", ids=list(ids))
    return decided([looked_at(row) for row in rows], {each.id: each for each in waiters})


def looked_at(row: Row) -> LookedAt:
    """A row of `look_at_flow_jobs`."""
    return LookedAt(
        str(row[0]),
        bool(row[1]),
        text_or_none(row[2]),
        text_or_none(row[3]),
        text_or_none(row[4]),
        bool(row[5]),
    )


def _wake(ids: list[str], actor: str | None) -> Steps[list[Requeued]]:
    if not ids:
        return []
    queued = yield from wake_locked(ids, actor=actor)
    yield from execute("note_flow_jobs_woken", ids=ids)
    return queued


def _cancel(reasons: Mapping[str, list[str]], actor: str | None) -> Steps[list[MovedJob]]:
    moved: list[MovedJob] = []
    for reason, ids in reasons.items():
        idle = first_column((yield from execute("cancel_idle", ids=ids, actor=actor, reason=reason)))
        moved += yield from archive(idle)
    return moved


def _call_back(flows: list[str]) -> Steps[list[NewJob]]:
    """Make the callbacks whose time has come. One that is refused is noted, and keeps no flow from going on."""
    made: list[NewJob] = []
    for job_id, text in (yield from execute("take_callbacks", flows=flows)):
        job = NEW_JOB.decode(str(text))
        try:
            yield from (store.submit_gated if job.writes_more else store.submit)([job]).steps()
        except (
            FencerowError
        ) as error:  # nothing of it was written: it names what nobody defined, or was left out
            yield from execute("note_callback_trouble", id=str(job_id), trouble=line_of(error)[:1000])
        else:
            made.append(job)
    return made


class Missed(msgspec.Struct, frozen=True):
    """Whose ends were written that had been missed, and the id to go on after; "": that was the last."""

    ids: list[str]
    after: str


@operation()
def mend(after: str, *, limit: int) -> Steps[Missed]:
    """Write the ends of jobs that ended without a word, as somebody moved or removed them by hand, among so many after
    this id. Locked rows are left for the next round. May be repeated."""
    ((looked, last),) = yield from execute("flow_jobs_after", after=after, limit=limit)
    if not looked:
        return Missed([], "")
    missed = first_column((yield from execute("lock_missed_flow_jobs", after=after, last=str(last))))
    ids = first_column((yield from execute("write_missed_flow_ends", ids=missed))) if missed else []
    return Missed(ids, str(last) if as_int(looked) == limit else "")
