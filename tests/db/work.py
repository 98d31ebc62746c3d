"""Keyed jobs for tests of lent connections, and what others see of a job."""

from __future__ import annotations

from fencerow.core.model.job import KeyClaim, NewJob
from fencerow.core.store import store
from tests.kit.jobs import AnyEngine, claim, new_job, register


def keyed(
    key: str = "k", fingerprint: str = "f", *, job_id: str | None = None
) -> tuple[list[NewJob], list[KeyClaim]]:
    """A job under a key, as `submit_keyed` takes it."""
    job = new_job(scope="s", key=key, id=job_id)
    return [job], [KeyClaim(scope="s", key=key, job_id=job.id, fingerprint=fingerprint, lifetime_s=60)]


def seen(engine: AnyEngine, job_id: str) -> bool:
    """Whether the job is there for others than the connection that submitted it."""
    return job_id in engine.run(store.existing([job_id]))


def claimed(engine: AnyEngine) -> list[str]:
    """The ids that a worker gets now."""
    return [found.id for found in claim(engine, register(engine))]
