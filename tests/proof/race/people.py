"""Who takes part in the races: jobs, workers and what they do."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import msgspec

from fencerow.core.model.job import Claimed, Fence, KeyClaim, NewJob, Template
from fencerow.core.model.submission import SubmitResult
from fencerow.core.model.wanted import OverdueAttempt, Stated
from fencerow.core.store import store
from fencerow.core.store.attempts import MovedJob, Requeued
from fencerow.core.store.moves import CancelResult
from fencerow.core.store.suspending import Suspending
from fencerow.db.run import Operation
from fencerow_proof.arena.actor import Actor, Script, later
from fencerow_proof.arena.race import Story
from tests.kit.asked import submit_keyed

LEASE_S = 30.0
LATE_US = 4_102_444_800_000_000  # the year 2100: whoever judges until then is never late


def uid(number: int) -> str:
    """An id that reads well in a script."""
    return f"00000000-0000-4000-8000-{number:012d}"


JOB, OTHER_JOB, THIRD_JOB = uid(1), uid(2), uid(3)
FIRST, SECOND, THIRD = uid(101), uid(102), uid(103)  # workers


def new_job(job_id: str = JOB, **fields: Any) -> NewJob:
    args = fields.pop("args", "{}")
    turns: list[Any] = [
        fields.pop(name, None) for name in ("exclusive", "limits", "share", "affinity", "terms")
    ]
    template = Template(**{"queue": "mail", "name": "send", **fields})
    return NewJob(job_id, args, len(args), template, *turns)


def of_a_key(job_id: str = JOB, **fields: Any) -> NewJob:
    """A job that needs a turn of the key k."""
    return new_job(job_id, exclusive="k", **fields)


def key_claim(
    job_id: str, fingerprint: str = "same", *, key: str = "k", lifetime_s: float = 60.0
) -> KeyClaim:
    return KeyClaim(scope="s", key=key, job_id=job_id, fingerprint=fingerprint, lifetime_s=lifetime_s)


def keyed(job_id: str, fingerprint: str = "same", **fields: Any) -> Operation[list[SubmitResult]]:
    return submit_keyed([new_job(job_id, scope="s", key="k", **fields)], [key_claim(job_id, fingerprint)])


def register(holder: str) -> Operation[bool]:
    return store.register(holder=holder, name="w", host="h", pid=1, info="{}", lease_s=LEASE_S)


def die(judge: str, until_us: int = LATE_US) -> Operation[list[str]]:
    return store.die(judge=judge, until_us=until_us)


def claim(holder: str, limit: int = 1) -> Operation[list[Claimed]]:
    return store.claim("mail", [store.Mark(0)], holder=holder, names=["send"], limit=limit, margin_s=10.0)


def succeed(holder: str, attempt: int = 1, job_id: str = JOB) -> Operation[list[MovedJob]]:
    return store.succeed([store.Success(job_id, attempt, '"done"')], holder=holder)


def fail(holder: str, attempt: int = 1, job_id: str = JOB) -> Operation[list[MovedJob]]:
    return store.fail([store.Failure(job_id, attempt, '{"type":"E"}')], holder=holder)


def overdue(attempt: int = 1, *, begun: bool = True, holder: str = FIRST) -> Operation[Any]:
    """The holder says in a renewal that it cannot end the attempt, or does not begin it."""
    stated = Stated(version=0, slot_groups=(), overdue=(OverdueAttempt(JOB, attempt, begun),))
    return store.renew(holder=holder, stated=msgspec.json.encode(stated).decode())


def requeue(
    holder: str, attempt: int = 1, kind: str = "retried", job_id: str = JOB
) -> Operation[list[Requeued]]:
    delay_s = None if kind == "released" else 0.0
    outcome = store.Requeue(
        id=job_id,
        attempt=attempt,
        kind=kind,
        delay_s=delay_s,
        failures=int(kind == "retried"),
        snoozes=int(kind == "snoozed"),
    )
    return store.requeue([outcome], holder=holder)


def suspend(holder: str, attempt: int = 1, job_id: str = JOB) -> Operation[Suspending]:
    return store.suspend([store.SuspendedAttempt(job_id, attempt, '{"reason":"a test"}')], holder=holder)


def stop(holder: str, attempt: int = 1, job_id: str = JOB) -> Operation[list[MovedJob]]:
    return store.stop([store.Stop(job_id, attempt, None)], holder=holder)


def crash(holder: str, attempt: int = 1, job_id: str = JOB) -> Operation[Any]:
    return store.crash([store.Crash(job_id, attempt, 0.0, "killed by signal 9 (SIGKILL)")], holder=holder)


def note_alone(holder: str, attempt: int = 1, job_id: str = JOB) -> Operation[bool]:
    return store.note_alone(job_id, holder=holder, attempt=attempt)


def cancel(job_id: str = JOB) -> Operation[CancelResult]:
    return store.cancel(job_id, actor="someone")


def revive(job_id: str = JOB) -> Operation[Requeued]:
    return store.revive(job_id, actor="someone")


def reclaim(*dead: str) -> Operation[Any]:
    return store.reclaim(list(dead), limit=10, actor="reaper")


def nothing() -> Script:
    """A setup of an empty database, or a caller who is gone."""
    yield from ()


def with_jobs(*jobs: NewJob, workers: Sequence[str] = (FIRST, SECOND)) -> Any:
    """A setup: living workers, and jobs that are due."""

    def setup() -> Script:
        for holder in workers:
            yield register(holder)
        yield store.submit(list(jobs) or [new_job()])

    return setup


def with_running(*jobs: NewJob, holder: str = FIRST, workers: Sequence[str] = (FIRST, SECOND)) -> Any:
    """A setup: the same, and the jobs run under `holder` in their first attempt."""

    def setup() -> Script:
        yield from with_jobs(*jobs, workers=workers)()
        yield claim(holder, limit=max(1, len(jobs)))

    return setup


def with_zombie() -> Script:
    """A setup: the first worker ran the job, was declared dead, and its job was taken back. It does not know yet."""
    yield from with_jobs()()
    yield claim(FIRST)
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)
    yield from sweep()


def sweep() -> Script:
    """What a reaper does."""
    yield later(0)
    dead = yield die(SECOND)
    yield store.adopt((yield store.lost_holders()))
    holders = yield store.dead_holders()
    yield reclaim(*holders)
    return dead


def working(name: str, holder: str, limit: int = 1) -> Actor:
    """A worker that claims once and succeeds at what it got; returns (claimed, moved)."""

    def script(_: Any) -> Script:
        claimed = yield claim(holder, limit)
        moved = []
        for job in claimed:
            moved += yield succeed(holder, job.attempt, job.id)
        return [job.id for job in claimed], [job.id for job in moved]

    return Actor(name, script)


def acting(name: str, script: Any) -> Actor:
    """An actor by a script that needs nothing of the setup."""
    return Actor(name, lambda _: script())


def fence(story: Story, job_id: str = JOB) -> Fence | None:
    """The job as it stands at the end."""
    fences = story.run(store.read_fences([job_id]))
    return fences.get(job_id)


def state(story: Story, job_id: str = JOB) -> str | None:
    found = fence(story, job_id)
    return None if found is None else found.state.value


def anything(_: Story) -> None:
    """The invariants and the history say enough."""


TRIES = 2  # of an ending whose row a stranger had locked; a worker tries on, an explorer must come to an end


def finishing(holder: str, attempts: Sequence[tuple[str, int]]) -> Generator[Operation[Any], Any, list[str]]:
    """What a worker does to succeed: what was skipped is looked up, and repeated while it is still its own."""
    left, done = dict(attempts), []
    for _ in range(TRIES):
        for moved in (
            yield store.succeed([store.Success(i, a, '"done"') for i, a in left.items()], holder=holder)
        ):
            done.append(moved.id)
            del left[moved.id]
        if not left:
            break
        fences = yield store.read_fences(list(left))
        mine = {f.id for f in fences.values() if f.state == "running" and f.holder == holder}
        left = {i: a for i, a in left.items() if i in mine and fences[i].attempt == a}
        if not left:
            break
    return done
