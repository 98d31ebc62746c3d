"""Short ways to what most tests need: a job, a worker's row, a claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import msgspec

from fencerow.core.model.ids import new_id
from fencerow.core.model.job import Claimed, JobRecord, NewJob, Template
from fencerow.core.model.wanted import OverdueAttempt, Stated
from fencerow.core.store import store
from fencerow.core.store.claims import Mark
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine

AnyEngine = SqliteEngine | PostgresEngine

QUEUE = "mail"
NAME = "send"


def new_job(args: str = '{"to":"ada"}', **changes: Any) -> NewJob:
    """A job that is due at once; `changes` are fields of NewJob and of its template."""
    job_id, size = changes.pop("id", None), changes.pop("args_bytes", None)
    exclusive, limits = changes.pop("exclusive", None), changes.pop("limits", None)
    share, affinity = changes.pop("share", None), changes.pop("affinity", None)
    terms = changes.pop("terms", None)
    template = Template(**{"queue": QUEUE, "name": NAME, **changes})
    size = len(args.encode()) if size is None else size
    return NewJob(job_id or new_id(), args, size, template, exclusive, limits, share, affinity, terms)


def register(engine: AnyEngine, *, lease_s: float = 30.0, holder: str | None = None) -> str:
    """Register a living worker and return its id, the holder of what it claims; a new one unless it is given."""
    holder = holder or new_id()
    made = engine.run(
        store.register(holder=holder, name="w", host="h", pid=1, info='{"queues":["mail"]}', lease_s=lease_s)
    )
    assert made
    return holder


LATE_US = 4_102_444_800_000_000  # the year 2100: whoever judges until then is never late


def bury(engine: AnyEngine) -> list[str]:
    """Declare dead whose lease has run out, in the name of a worker that has just registered."""
    return engine.run(store.die(judge=register(engine, lease_s=1e6), until_us=LATE_US))


def overdue(*attempts: tuple[str, int, bool]) -> str:
    """What a worker states that calls these attempts overdue: the job, the attempt, whether it had begun."""
    late = [OverdueAttempt(job_id, attempt, begun) for job_id, attempt, begun in attempts]
    return msgspec.json.encode(Stated(version=0, slot_groups=(), overdue=tuple(late))).decode()


def submit(engine: AnyEngine, *jobs: NewJob) -> list[str]:
    """Submit jobs, by default one; returns their ids."""
    wanted = jobs or (new_job(),)
    storing = store.submit_gated if any(job.writes_more for job in wanted) else store.submit
    assert engine.run(storing(wanted)) == [job.id for job in wanted]
    return [job.id for job in wanted]


def claim(
    engine: AnyEngine,
    holder: str,
    *,
    limit: int = 10,
    queue: str = QUEUE,
    names: Sequence[str] = (NAME,),
    marks: Sequence[Mark] = (Mark(0),),
    margin_s: float = 60.0,
) -> list[Claimed]:
    """Claim for a worker, from lane 0 if no marks are given."""
    return engine.run(store.claim(queue, marks, holder=holder, names=names, limit=limit, margin_s=margin_s))


def claim_labelled(
    engine: AnyEngine,
    holder: str,
    *labels: str,
    limit: int = 10,
    marks: Sequence[Mark] = (Mark(0),),
    beside: bool = True,
) -> list[str]:
    """Claim for a worker with these labels, theirs first in each priority; returns the ids. Not `beside`: only what
    waits for one of them."""
    names = [f"label:{label}" for label in labels] + ([""] if beside else [])
    lanes = [replace(mark, lane=name) for mark in marks for name in names]
    return [job.id for job in claim(engine, holder, limit=limit, marks=lanes)]


def running(engine: AnyEngine, holder: str | None = None, **changes: Any) -> Claimed:
    """One job in the hands of a worker (a new one if none is given), whatever else is queued."""
    (job_id,) = submit(engine, job := new_job(**changes))
    before = str(UUID(int=UUID(job_id).int - 1))
    mark = Mark(job.template.priority, read(engine, job_id).run_at_us, before)
    (claimed,) = claim(engine, holder or register(engine), limit=1, queue=job.template.queue, marks=[mark])
    assert claimed.id == job_id
    return claimed


def read(engine: AnyEngine, job_id: str) -> JobRecord:
    """A job as it stands."""
    return engine.run(store.read([job_id]))[job_id]
