"""Why a job is not running: each condition of its claim by itself, with the facts.

Reads only, through the store's own verbs. The command prints the answer; a dashboard may as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from fencerow.core.db.run import Steps, operation
from fencerow.core.errors import JobNotFound
from fencerow.core.model.job import JobRecord, WorkerRecord
from fencerow.core.model.state import State, WorkerState
from fencerow.core.store.read import clock, read
from fencerow.core.store.workers import holdings, list_workers
from fencerow.operators.looking import ahead
from fencerow.operators.queues import PausedQueue, paused_queues

WORKERS_MAX = 1_000
AHEAD_MAX = 1_000
OVERDUE = "its worker ends it; or the worker reports it overdue by its own clock, and a sweep ends it"
SWEEP = "a worker's sweep finds what commits late within max(1 s, 50 × the sweep's cost)"


class Condition(msgspec.Struct, frozen=True):
    """One condition of the claim. `holds` is None where it cannot be known or plays no part."""

    name: str
    holds: bool | None
    found: str
    facts: dict[str, Any] = {}


class Diagnosis(msgspec.Struct, frozen=True):
    """Why a job is not running: the short of it, and every condition that was looked at."""

    id: str
    state: State
    summary: str
    conditions: list[Condition]


class WorkerLoad(msgspec.Struct, frozen=True):
    """A living worker, what it says it serves, and how many jobs it holds."""

    worker: WorkerRecord
    running: int
    runs_suspect: bool

    def knows(self, job: JobRecord) -> bool:
        """Whether it has the job's handler. One that did not say is taken to."""
        return self.worker.names is None or job.name in self.worker.names

    def serves(self, job: JobRecord) -> bool:
        """Whether it looks at the job's queue. One that did not say is taken to."""
        return self.worker.queues is None or job.queue in self.worker.queues

    @property
    def clock_behind_s(self) -> float:
        """How far the database's clock went back behind what it has seen it reach; it takes what was due before."""
        return 0.0 if self.worker.stated is None else self.worker.stated.clock_behind_s

    @property
    def free(self) -> int | None:
        """Slots that hold no job."""
        return None if self.worker.slots is None else max(0, self.worker.slots - self.running)


@operation(repeatable=True, writes="", both_files=True)
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
        return _ended(job, now_us)
    if job.state is State.RUNNING:
        return _running(job, (yield from list_workers(limit=WORKERS_MAX).steps()), now_us)
    paused = {each.name: each for each in (yield from paused_queues().steps())}
    living = yield from _living(suspects=job.suspect)
    before = yield from ahead(job_id).steps()
    return _not_running(job, paused.get(job.queue), living, before, now_us)


def _living(*, suspects: bool) -> Steps[list[WorkerLoad]]:
    """Each living worker; what it holds is read only where a suspect among it would matter."""
    found = []
    for worker in (yield from list_workers(state=WorkerState.ALIVE.value, limit=WORKERS_MAX).steps()):
        held = yield from holdings(holder=worker.id).steps()
        jobs = (yield from read([each.id for each in held]).steps()) if suspects else {}
        found.append(WorkerLoad(worker, len(held), any(each.suspect for each in jobs.values())))
    return found


def _ended(job: JobRecord, now_us: int) -> Diagnosis:
    error = job.error if isinstance(job.error, dict) else {}
    reason = str(error.get("message") or error.get("type") or "")
    found = f"{job.state.value} {_ago(job.ended_at_us, now_us)}".strip() + (f": {reason}" if reason else "")
    fact = Condition(
        "has not ended",
        False,
        found,
        {"ended_at_us": job.ended_at_us, "attempt": job.attempt, "error": job.error},
    )
    return Diagnosis(job.id, job.state, f"it has ended: {job.state.value}", [fact])


def _running(job: JobRecord, workers: list[WorkerRecord], now_us: int) -> Diagnosis:
    holder = next((each for each in workers if each.id == job.holder), None)
    conditions = [
        Condition(
            "is running",
            True,
            f"attempt {job.attempt}, claimed {_ago(job.claimed_at_us, now_us)}",
            {"holder": job.holder, "attempt": job.attempt, "claimed_at_us": job.claimed_at_us},
        ),
        _holder(job, holder),
        _deadline(job, now_us),
        _cancel(job, now_us),
    ]
    alive = holder is not None and holder.state == WorkerState.ALIVE and holder.lease_until_us > holder.now_us
    summary = (
        "it is running" if alive else "it is marked running, but its holder is gone: a sweep takes it back"
    )
    return Diagnosis(job.id, job.state, summary, conditions)


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
        + (f"alive, {left_s:.1f} s of its lease left" if alive else state),
        {"name": holder.name, "host": holder.host, "pid": holder.pid, "lease_left_s": left_s},
    )


def _deadline(job: JobRecord, now_us: int) -> Condition:
    if job.deadline_at_us is None:
        return Condition("deadline is ahead", None, "it has no deadline")
    left_s = (job.deadline_at_us - now_us) / 1e6
    found = f"{left_s:.1f} s left" if left_s > 0 else f"past by {-left_s:.1f} s; {OVERDUE}"
    return Condition("deadline is ahead", left_s > 0, found, {"deadline_at_us": job.deadline_at_us})


def _not_running(
    job: JobRecord, pause: PausedQueue | None, living: list[WorkerLoad], before: int, now_us: int
) -> Diagnosis:
    able = [each for each in living if each.serves(job) and each.knows(job)]
    serving = [each for each in able if each.worker.claims]
    conditions = [
        _queued(job),
        _due(job, living, now_us),
        _open(job, pause, now_us),
        _unexpired(job, now_us),
        _cancel(job, now_us),
        _known(job, living),
        _served(job, living),
        _claiming(able),
        _free(serving),
        _alone(job, serving),
        _first(job, before, serving, now_us),
    ]
    false = [each for each in conditions if each.holds is False]
    if false:
        summary = "; ".join(f"{each.name}: no, {each.found}" for each in false[:2])
    else:
        summary = f"every condition holds: it is claimed at the next look; {SWEEP}"
    return Diagnosis(job.id, job.state, summary, conditions)


def _queued(job: JobRecord) -> Condition:
    if job.state is State.WAITING:
        return Condition("is queued", False, "it is waiting for a signal, a child or a time")
    return Condition("is queued", True, f"in queue {job.queue}, priority {job.priority}")


def _due(job: JobRecord, living: list[WorkerLoad], now_us: int) -> Condition:
    left_s = (job.run_at_us - now_us) / 1e6
    found = f"due in {_span(left_s)}" if left_s > 0 else f"due since {_span(-left_s)}"
    facts = {"run_at_us": job.run_at_us, "now_us": now_us}
    behind_s = max((each.clock_behind_s for each in living), default=0.0)
    if left_s <= 0 or not behind_s:
        return Condition("is due", left_s <= 0, found, facts)
    written_us = job.claimed_at_us or job.revived_at_us or job.submitted_at_us
    due = left_s <= behind_s and written_us > now_us
    found += f" by the database's clock, which went back by {_span(behind_s)}"
    found += ": it was due before, and is claimed now too" if due else ""
    return Condition("is due", due, found, {**facts, "clock_behind_s": behind_s})


def _open(job: JobRecord, pause: PausedQueue | None, now_us: int) -> Condition:
    if pause is None:
        return Condition("queue is not paused", True, f"queue {job.queue} is open")
    by = f" by {pause.paused_by}" if pause.paused_by else ""
    reason = f": {pause.reason}" if pause.reason else ""
    return Condition(
        "queue is not paused",
        False,
        f"queue {job.queue} was paused {_ago(pause.paused_at_us, now_us)}{by}{reason}",
        {"paused_at_us": pause.paused_at_us, "paused_by": pause.paused_by, "reason": pause.reason},
    )


def _unexpired(job: JobRecord, now_us: int) -> Condition:
    if job.expires_at_us is None:
        return Condition("has not expired", True, "it never expires")
    left_s = (job.expires_at_us - now_us) / 1e6
    found = f"expires in {_span(left_s)}" if left_s > 0 else f"expired {_span(-left_s)} ago: a sweep ends it"
    return Condition("has not expired", left_s > 0, found, {"expires_at_us": job.expires_at_us})


def _cancel(job: JobRecord, now_us: int) -> Condition:
    if job.cancel_requested_at_us is None:
        return Condition("no cancel was asked", True, "nobody asked")
    by = f" by {job.cancel_requested_by}" if job.cancel_requested_by else ""
    return Condition(
        "no cancel was asked",
        False,
        f"asked {_ago(job.cancel_requested_at_us, now_us)}{by}",
        {"at_us": job.cancel_requested_at_us, "by": job.cancel_requested_by},
    )


def _known(job: JobRecord, living: list[WorkerLoad]) -> Condition:
    if not living:
        return Condition(
            "a living worker knows the job", False, "no worker is alive: start `fencerow worker`"
        )
    knowing = [each for each in living if each.knows(job)]
    found = f"{len(knowing)} of {len(living)} living workers know {job.name}"
    if not knowing:
        found += ": deploy the code that declares it, or correct the name"
    return Condition("a living worker knows the job", bool(knowing), found, {"workers": _ids(knowing)})


def _served(job: JobRecord, living: list[WorkerLoad]) -> Condition:
    serving = [each for each in living if each.serves(job)]
    found = f"{len(serving)} of {len(living)} living workers serve queue {job.queue}"
    return Condition("a living worker serves the queue", bool(serving), found, {"workers": _ids(serving)})


def _claiming(able: list[WorkerLoad]) -> Condition:
    name = "one of those workers claims"
    idle = [each.worker for each in able if not each.worker.claims]
    if len(idle) < len(able) or not able:
        found = f"{len(idle)} of {len(able)} are paused or leaving" if able else "no worker would take it"
        return Condition(name, True if able else None, found)
    paused = sorted({each.name for each in idle if each.stated is not None and not each.stated.leaving})
    fix = f": `fencerow workers resume {paused[0]}`" if paused else ""
    return Condition(name, False, f"all {len(able)} are paused or leaving{fix}", {"workers": _ids(able)})


def _free(serving: list[WorkerLoad]) -> Condition:
    known = [each.free for each in serving if each.free is not None]
    if len(known) < len(serving) or not serving:
        return Condition("a slot is free", None, "not known" if serving else "no worker would take it")
    found = (
        f"{sum(known)} of {sum(each.worker.slots or 0 for each in serving)} slots of those workers are free"
    )
    return Condition("a slot is free", any(known), found, {"free": sum(known)})


def _alone(job: JobRecord, serving: list[WorkerLoad]) -> Condition:
    name = "may run beside others"
    if not job.suspect:
        return Condition(name, True, "it is no suspect")
    idle = [each for each in serving if not each.runs_suspect]
    return Condition(
        name,
        bool(idle) if serving else None,
        "its last process died while it ran, so it runs apart, and a worker runs few of those at once (one more when "
        f"one ends well, or after 10 s); {len(idle)} of {len(serving)} workers run none now",
        {"crashes": job.crashes, "crashes_max": job.crashes_max},
    )


def _first(job: JobRecord, before: int, serving: list[WorkerLoad], now_us: int) -> Condition:
    name = "is next in its lane"
    if job.suspect:
        return Condition(name, None, "suspects have a lane of their own")
    if job.run_at_us > now_us:
        return Condition(name, None, "its place in the queue is known when it is due")
    free = sum(each.free or 0 for each in serving)
    shown = f"{before}" if before < AHEAD_MAX else f"{AHEAD_MAX} or more"
    found = f"{shown} due jobs of queue {job.queue} come before it; {SWEEP}"
    return Condition(name, before == 0 or before < free, found, {"ahead": before})


def _ids(workers: list[WorkerLoad]) -> list[str]:
    return [each.worker.id for each in workers]


def _ago(then_us: int | None, now_us: int) -> str:
    return "" if then_us is None else f"{_span((now_us - then_us) / 1e6)} ago"


_UNITS: tuple[tuple[float, Callable[[float], str]], ...] = (
    (120.0, lambda s: f"{s:.1f} s"),
    (7_200.0, lambda s: f"{s / 60:.0f} min"),
    (172_800.0, lambda s: f"{s / 3_600:.1f} h"),
)


def _span(seconds: float) -> str:
    for below, shown in _UNITS:
        if seconds < below:
            return shown(seconds)
    return f"{seconds / 86_400:.1f} days"
