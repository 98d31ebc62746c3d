"""Why a job is not running: each condition of its claim by itself, with the facts.

Reads only, through the store's own verbs. The command prints the answer; a dashboard may as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fencerow.command.times import span
from fencerow.core.errors import ArgumentsTooNew, JobNotFound, SealKeyUnknown, StoreUnavailable
from fencerow.core.model.job import JobRecord
from fencerow.core.model.state import State, WorkerState
from fencerow.core.model.worker import WorkerRecord
from fencerow.core.store.read import clock, read, releases
from fencerow.core.store.workers import list_workers
from fencerow.db.run import Procedure, Steps, ask, operation
from fencerow.doctor import conditions
from fencerow.doctor.affinity import for_a_label, waits_for_a_label
from fencerow.doctor.conditions import LATE, Condition
from fencerow.doctor.loads import WorkerLoad
from fencerow.doctor.places import PATIENCE_S, place
from fencerow.doctor.waits import suspended_by_wings
from fencerow.operators.held import NONE_HELD, HeldJob, held_counts, held_jobs
from fencerow.operators.looking import ahead, events
from fencerow.operators.queues import PausedQueue, paused_queue
from fencerow.unique.keys import unique_keys_of

if TYPE_CHECKING:
    from fencerow.handovers.looking import PlacedHandover

WORKERS_MAX = 1_000
BUSY_MAX = 5
OVERDUE = "its worker ends it; or the worker reports it overdue by its own clock, and another worker ends it"


class Diagnosis(msgspec.Struct, frozen=True):
    """Why a job is not running: the short of it, and every condition that was looked at."""

    id: str
    state: State
    summary: str
    conditions: list[Condition]


@operation(repeatable=True, writes="", reads="both")
def why(job_id: str) -> Steps[Diagnosis]:
    """Look at every condition of the job's claim.

    Raises:
        JobNotFound: there is no such job.
    """
    job = (yield from read([job_id]).steps()).get(job_id)
    if job is None:
        raise JobNotFound(
            f"there is no job {job_id}",
            "neither live nor finished; retention may have removed it",
            "check the id and the database",
        )
    now_us = yield from clock().steps()
    if job.is_final:
        from fencerow.handovers.looking import placed_handover  # who asks why a job waits never loads it

        return _ended(job, now_us, (yield from placed_handover(job_id).steps()))
    if job.state is State.RUNNING:
        return _running(job, (yield from list_workers(limit=WORKERS_MAX).steps()), now_us)
    pause = yield from paused_queue(job.queue).steps()
    gate = yield from place(job).steps()
    living = yield from _living()
    claiming = [each for each in living if each.serves(job) and each.knows(job) and each.worker.claims]
    if waits_for_a_label(job):
        claiming = [each for each in claiming if job.affinity in each.worker.labels]
    busy = [] if any(each.free for each in claiming) else (yield from _busy(claiming))
    newer = (yield from releases(job_id, reason=ArgumentsTooNew.code).steps()).count
    locked = (yield from releases(job_id, reason=SealKeyUnknown.code).steps()).count
    away = (yield from releases(job_id, reason=StoreUnavailable.code).steps()).count
    timeline = yield from events(job_id).steps()
    changes = [each for each in timeline if each.kind == "changed"]
    keys = (yield from unique_keys_of([job_id]).steps()).get(job_id, [])
    unique = conditions.unique(keys, timeline, now_us)
    looked = [
        *(yield from suspended_by_wings(job)),
        *conditions.before_a_slot(
            job,
            pause,
            gate,
            living,
            now_us,
            conditions.suspended(job, timeline, now_us) or _label(job, living, now_us),
        ),
        *([conditions.changed(changes, now_us)] if changes else []),
        *([unique] if unique is not None else []),
        conditions.readable(job, newer, locked, away),
        conditions.free(claiming, busy, now_us),
        conditions.alone(job, claiming),
        conditions.first(job, (yield from ahead(job_id).steps()), claiming, now_us),
    ]
    return Diagnosis(job.id, job.state, _summary(looked), looked)


def briefly(job_id: str) -> Procedure[str]:
    """Why a job has not ended, in a few words, for who waited in vain: it asks little, and never for long.

    Jobs and workers are asked one after the other, so that on SQLite only who asks of a job at a gate waits for a turn.
    """
    job, pause, now_us = yield from ask(_alone(job_id))
    if job is None:
        return "it is nowhere: neither live nor finished"
    gate = None if job.gate is None else (yield from ask(place(job)))
    workers = yield from ask(list_workers(state=WorkerState.ALIVE.value, limit=WORKERS_MAX))
    if job.is_final:
        return f"it has just ended: {job.state.value}"
    if job.state is State.RUNNING:
        return _running(job, workers, now_us).summary
    living = [WorkerLoad(each, 0, False) for each in workers]
    looked = conditions.before_a_slot(job, pause, gate, living, now_us, _label(job, living, now_us))
    return _false(looked) or f"it waits in queue {job.queue} for a slot of a worker"


@operation(repeatable=True, writes="", patience_s=PATIENCE_S)
def _alone(job_id: str) -> Steps[tuple[JobRecord | None, PausedQueue | None, int]]:
    """The job, the pause of its queue, and the time."""
    job = (yield from read([job_id]).steps()).get(job_id)
    pause = None if job is None else (yield from paused_queue(job.queue).steps())
    return job, pause, (yield from clock().steps())


def _label(job: JobRecord, living: list[WorkerLoad], now_us: int) -> Condition | None:
    """What is said of a job that waits for a label; None of all others."""
    return for_a_label(job, living, now_us) if waits_for_a_label(job) else None


def _busy(claiming: list[WorkerLoad]) -> Steps[list[HeldJob]]:
    """What the first of these workers hold."""
    held: list[HeldJob] = []
    for each in claiming[:BUSY_MAX]:
        held += yield from held_jobs(each.worker.id).steps()
    return held


def _summary(looked: list[Condition]) -> str:
    return _false(looked) or f"every condition holds: it is claimed at the next look; {LATE}"


def _false(looked: list[Condition]) -> str:
    """What was found of the first two conditions that do not hold, each told once."""
    first, *more = [each.found for each in looked if each.holds is False] or [""]
    return "; ".join([first, *[each for each in more if each not in first][:1]])


def _living() -> Steps[list[WorkerLoad]]:
    """Each living worker, and how much it holds."""
    workers = yield from list_workers(state=WorkerState.ALIVE.value, limit=WORKERS_MAX).steps()
    held = yield from held_counts([each.id for each in workers]).steps()
    counts = [(each, held.get(each.id, NONE_HELD)) for each in workers]
    return [WorkerLoad(each, count.jobs, count.suspects > 0) for each, count in counts]


def _ended(job: JobRecord, now_us: int, handover: PlacedHandover | None) -> Diagnosis:
    error = job.error if isinstance(job.error, dict) else {}
    reason = str(error.get("message") or error.get("type") or "")
    when = f"it ended {conditions.ago(job.ended_at_us, now_us)}, in attempt {job.attempt}"
    found = f"{when}: {reason}" if reason else when
    facts = {"ended_at_us": job.ended_at_us, "attempt": job.attempt, "error": job.error}
    looked = [Condition("has ended", True, f"{job.state.value}: {found}", facts)]
    if handover is not None:
        looked.append(where := _handed(handover))
        found += "" if where.holds else f"; its end is not confirmed: {where.found}"
    return Diagnosis(job.id, job.state, found, looked)


def _handed(found: PlacedHandover) -> Condition:
    """Whether the receiver of the job's end has confirmed it."""
    each = found.handover
    facts = {"receiver": each.receiver, "key": each.key, "token": each.token, "behind": found.behind}
    confirmed = each.confirmed_at_us is not None
    return Condition(
        "is confirmed", confirmed, f"receiver {each.receiver}, key {each.key}: {found.standing}", facts
    )


def _running(job: JobRecord, workers: list[WorkerRecord], now_us: int) -> Diagnosis:
    holder = next((each for each in workers if each.id == job.holder), None)
    looked = [
        Condition(
            "is running",
            True,
            f"attempt {job.attempt}, claimed {conditions.ago(job.claimed_at_us, now_us)}",
            {"holder": job.holder, "attempt": job.attempt, "claimed_at_us": job.claimed_at_us},
        ),
        _holder(job, holder),
        _deadline(job, now_us),
        conditions.cancel(job, now_us),
    ]
    return Diagnosis(job.id, job.state, _how_it_runs(job, holder, looked, now_us), looked)


def _how_it_runs(job: JobRecord, holder: WorkerRecord | None, looked: list[Condition], now_us: int) -> str:
    if holder is None or holder.state != WorkerState.ALIVE or holder.lease_until_us <= holder.now_us:
        return "it is marked running, but its worker is gone: another worker takes it back"
    where = f"{holder.name} on {holder.host}, pid {holder.pid}"
    since = f"attempt {job.attempt}, claimed {conditions.ago(job.claimed_at_us, now_us)} by {where}"
    return "; ".join([since, *(each.found for each in looked if each.holds is False)])


def _holder(job: JobRecord, holder: WorkerRecord | None) -> Condition:
    if holder is None:
        return Condition("holder is alive", False, f"worker {job.holder} has no registration")
    left_s = (holder.lease_until_us - holder.now_us) / 1e6
    alive = holder.state == WorkerState.ALIVE and left_s > 0
    state = "its lease has run out" if holder.state == WorkerState.ALIVE and left_s <= 0 else holder.state
    return Condition(
        "holder is alive",
        alive,
        f"{holder.name} on {holder.host}, pid {holder.pid}: "
        + (f"alive, {span(left_s)} of its lease left" if alive else state),
        {"name": holder.name, "host": holder.host, "pid": holder.pid, "lease_left_s": left_s},
    )


def _deadline(job: JobRecord, now_us: int) -> Condition:
    if job.deadline_at_us is None:
        return Condition("deadline is ahead", None, "it has no deadline")
    left_s = (job.deadline_at_us - now_us) / 1e6
    found = f"{span(left_s)} left" if left_s > 0 else f"past by {span(-left_s)}; {OVERDUE}"
    return Condition("deadline is ahead", left_s > 0, found, {"deadline_at_us": job.deadline_at_us})
