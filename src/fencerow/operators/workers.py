"""`client.workers`: look at workers, and change them while they run; sync and async, from anywhere.

A worker is named by its id or the beginning of its id, by its name, a pattern of names (`mail-*`) or its host
(`host:db1`, `host:db*`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec

from fencerow.core.client.base import Verbs
from fencerow.core.errors import InvalidInput, WorkerNotFound
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.model.state import State, WorkerState
from fencerow.core.model.wakeup import Ordered, Queued, encode, encode_ended
from fencerow.core.model.wanted import Leave, OrderedChange
from fencerow.core.model.worker import WorkerRecord
from fencerow.core.store import store
from fencerow.core.store.attempts import MovedJob
from fencerow.core.store.orders import ALIVE_MAX, Order, gone
from fencerow.core.verb import averb, verb
from fencerow.db.run import Procedure, WakeUp, ask
from fencerow.db.text import amount, check_text
from fencerow.operators.finding import limited, member
from fencerow.operators.held import HeldJob, held_jobs
from fencerow.operators.prefixes import IdRange, parse_prefix, worker_meant

WHICH_LENGTH_MAX = 300
REASON_LENGTH_MAX = 500
BATCH_ROWS = 500  # that are taken back in one transaction
HOST = "host:"
WILD = "*?["


class Inspected(msgspec.Struct, frozen=True):
    """A worker: what is wanted of it, what it said last, and the jobs that it holds, the oldest claim first."""

    worker: WorkerRecord
    jobs: list[HeldJob]


class ReclaimedWorker(msgspec.Struct, frozen=True):
    """A worker whose registration is over, and what became of the jobs that it ran. `ended`: this has ended it."""

    worker: WorkerRecord
    ended: bool
    jobs: list[store.Reclaimed]


class Workers(Verbs):
    """Looks at workers and gives them orders. Each method has an async twin with an `a` in front."""

    @verb
    def registered(
        self, *, state: WorkerState | str | None = None, limit: int = 100
    ) -> Procedure[list[WorkerRecord]]:
        """Registrations, the newest first: all, or those that are alive, retired or dead.

        Raises:
            InvalidInput: there is no such state, or the limit is not from 1 to 10,000.
        """
        return (yield from registrations(state, limit))

    aregistered = averb(registered)

    @verb
    def find(self, which: str) -> Procedure[Sequence[WorkerRecord]]:
        """The living workers of this id, name, pattern or host.

        Raises:
            WorkerNotFound: there is none. WorkerGone: the one of this id or name has ended.
        """
        return (yield from finding(which))

    afind = averb(find)

    @verb
    def inspect(self, which: str, *, jobs_max: int = 100) -> Procedure[Inspected]:
        """One worker and the jobs that it holds. A registration that has ended may be named by its id.

        Raises:
            WorkerNotFound: there is none, or the name fits several.
        """
        return (yield from inspecting(which, jobs_max))

    ainspect = averb(inspect)

    @verb
    def change(
        self,
        which: str,
        *,
        slots: int | None = None,
        queues: Mapping[str, int | None] | None = None,
        remove: Sequence[str] = (),
        paused: bool | None = None,
        reason: str | None = None,
        version: int | None = None,
    ) -> Procedure[Order]:
        """Change what one worker serves while it runs. The worker carries the change out within `renew_s`,
        mostly at once.

        `slots`: for the queues that share them. `queues`: queues to serve from now on, each with slots of its
        own, or with None to join those that share slots. With `version`, the change is made only if that
        version still holds. Repeating it is harmless.

        Raises:
            WorkerNotFound, WorkerGone: there is no such worker, or it has ended.
            OrderRefused: somebody else changed it first, or it is leaving. `version` is the one that holds
                now.
            InvalidInput: the change does not fit what the worker serves.
        """
        change = OrderedChange(slots=slots, queues=queues or {}, remove=remove, paused=paused)
        return (yield from changing(which, change, self._client.actor, reason, version))

    achange = averb(change)

    @verb
    def drain(
        self, which: str, *, within_s: Seconds | None = None, reason: str | None = None
    ) -> Procedure[Order]:
        """Let one worker finish its running jobs and end. The order cannot be taken back; it can only be made
        to end sooner.

        Jobs that still run after `within_s` seconds are released, without a failure; 0 means at once. None is
        the worker's own limit: the longest timeout of its jobs and a margin.

        Raises:
            WorkerNotFound, WorkerGone: there is no such worker, or it has ended.
            OrderRefused: somebody else changed it first.
        """
        change = OrderedChange(leave=Leave(in_seconds(within_s)))
        return (yield from changing(which, change, self._client.actor, reason, None))

    adrain = averb(drain)

    @verb
    def reclaim(self, which: str) -> Procedure[ReclaimedWorker]:
        """End a worker's registration and take its jobs back now, instead of when its lease is over: its process is
        gone, or hangs and renews all the same.

        Its jobs are queued again as suspects, as after a death, and those of which a cancel was asked are cancelled.
        What the process still writes is refused; if it lives, it is told, ends its handlers and registers again. Until
        then the next attempts may run beside them. May be repeated; of several callers each job is taken by one.

        Raises:
            WorkerNotFound: there is none, or the name fits several. One whose registration is over is named by its id.
        """
        worker = (yield from inspecting(which, 1)).worker
        return (yield from taking_back(worker, self._client.actor))

    areclaim = averb(reclaim)


def registrations(state: WorkerState | str | None, limit: int) -> Procedure[list[WorkerRecord]]:
    """Registrations in this state, or all."""
    wanted = None if state is None else member(WorkerState, state, "state").value
    return (yield from ask(store.list_workers(state=wanted, limit=limited(limit))))


def finding(which: str) -> Procedure[list[WorkerRecord]]:
    """The living workers that are meant."""
    check_text(which, "the worker", WHICH_LENGTH_MAX)
    meant = _id(which)
    if meant is not None and meant.is_whole:
        return [(yield from _of_id(meant.first))]
    alive = yield from ask(store.list_workers(state=WorkerState.ALIVE.value, limit=ALIVE_MAX))
    found = [worker for worker in alive if fits(worker, which)]
    if found:
        return found
    holder = None if meant is None else (yield from worker_meant(meant))
    if holder is not None:
        return [(yield from _of_id(holder))]
    former = yield from ask(store.list_workers(limit=ALIVE_MAX))
    for worker in former:
        if fits(worker, which):
            raise gone(worker, alive)
    raise WorkerNotFound(
        f"no worker fits {ascii(which)[1:-1]}",
        f"{amount(len(alive), 'worker is', 'workers are')} alive; none has this name or host",
        "see `fencerow workers`; a host is written host:NAME, and * stands for anything",
    )


def inspecting(which: str, jobs_max: int) -> Procedure[Inspected]:
    """One worker, and the jobs it holds."""
    worker = yield from _any(which)
    return Inspected(worker, (yield from ask(held_jobs(worker.id, limit=limited(jobs_max, "jobs_max")))))


def changing(
    which: str, change: OrderedChange, actor: str | None, reason: str | None, version: int | None
) -> Procedure[Order]:
    """Order the change, and wake the worker for it."""
    if reason is not None:
        check_text(reason, "the reason", REASON_LENGTH_MAX, lines=True)
    worker = yield from _one(which)
    order = yield from store.ordering(worker.id, change, actor=actor, reason=reason, version=version)
    yield WakeUp([encode(Ordered(worker.id))])
    return order


def taking_back(worker: WorkerRecord, actor: str | None) -> Procedure[ReclaimedWorker]:
    """End the registration, then take back what runs under it, as after a death.

    Of several who do this, and of the sweeps of all workers, each job has one that takes it back; the others find
    nothing. Whoever dies in between leaves a registration that is over: a sweep takes the rest back.
    """
    ended = False
    if worker.state == WorkerState.ALIVE:
        ended = yield from ask(store.retire(holder=worker.id))
        yield WakeUp(
            [encode(Ordered(worker.id))]
        )  # if its process lives, it learns now that all of it is lost
    jobs: list[store.Reclaimed] = []
    while True:
        taken, moved = yield from ask(store.reclaim([worker.id], limit=BATCH_ROWS, actor=actor))
        jobs += taken
        yield WakeUp([*_queued(taken), *_over(moved)])
        if len(taken) < BATCH_ROWS:
            return ReclaimedWorker(worker, ended, jobs)


def fits(worker: WorkerRecord, which: str) -> bool:
    """Whether the worker's name, or its host, is the one that is meant."""
    if which.startswith(HOST):
        return fnmatchcase(worker.host, which.removeprefix(HOST))
    return worker.name == which or fnmatchcase(worker.name, which)


def _one(which: str) -> Procedure[WorkerRecord]:
    found = yield from finding(which)
    if len(found) > 1:
        raise WorkerNotFound(
            f"{len(found)} workers fit {ascii(which)[1:-1]}",
            f"one is meant here; they are {', '.join(worker.id for worker in found[:5])}"
            + (" and more" if len(found) > 5 else ""),
            "name one by its id",
        )
    return found[0]


def _any(which: str) -> Procedure[WorkerRecord]:
    """One worker to look at: by its id it may have ended. A living one's name comes before the beginning of an id."""
    meant = _id(which)
    if meant is None:
        return (yield from _one(which))
    if not meant.is_whole:
        alive = yield from ask(store.list_workers(state=WorkerState.ALIVE.value, limit=ALIVE_MAX))
        if any(fits(worker, which) for worker in alive):
            return (yield from _one(which))
    holder = yield from worker_meant(meant)
    if holder is None:
        return (yield from _one(which))
    return (yield from _of_id(holder, ended_too=True))


def _of_id(holder: str, *, ended_too: bool = False) -> Procedure[WorkerRecord]:
    found = yield from ask(store.list_workers(holder=holder))
    if not found:
        raise WorkerNotFound(
            f"there is no worker {holder}",
            "no registration has this id, or it ended long ago",
            "see `fencerow workers`",
        )
    (worker,) = found
    if worker.state != WorkerState.ALIVE and not ended_too:
        raise gone(
            worker, (yield from ask(store.list_workers(state=WorkerState.ALIVE.value, limit=ALIVE_MAX)))
        )
    return worker


def _id(which: str) -> IdRange | None:
    try:
        return parse_prefix(which)
    except InvalidInput:
        return None


def _queued(taken: list[store.Reclaimed]) -> list[str]:
    lanes = {(job.queue, job.priority, job.run_at_us) for job in taken if job.state is State.QUEUED}
    return [encode(Queued(*lane)) for lane in sorted(lanes)]


def _over(moved: list[MovedJob]) -> list[str]:
    return encode_ended([job.id for job in moved if job.awaited])
