"""A job's timeline: the row's own columns tell the ordinary, noted events the exceptions."""

from __future__ import annotations

from collections.abc import Sequence

from fencerow.model.job import Happening, JobRecord


def timeline_of(job: JobRecord, noted: Sequence[Happening]) -> list[Happening]:
    """What happened to a job, in order."""
    kinds = {each.kind for each in noted if each.at_us == job.ended_at_us}
    own = [Happening(at_us=job.submitted_at_us, kind="submitted", attempt=0, actor=job.submitted_by)]
    if job.claimed_at_us is not None:
        own.append(Happening(at_us=job.claimed_at_us, kind="claimed", attempt=job.attempt, actor=job.holder))
    if job.ended_at_us is not None and job.state.value not in kinds:
        own.append(Happening(at_us=job.ended_at_us, kind=job.state.value, attempt=job.attempt))
    # Stable: of things at one instant the job's own columns come first, but for its end.
    return sorted([*own[:2], *noted, *own[2:]], key=lambda each: each.at_us)
