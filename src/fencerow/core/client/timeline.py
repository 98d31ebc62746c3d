"""A job's timeline: the row's own columns tell the ordinary, noted events the exceptions.

The row knows its last claim only. What ended an earlier attempt noted when and by whom that attempt
was claimed, so every claim of a job's life is in the timeline.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fencerow.core.model.job import Happening, JobRecord


def timeline_of(job: JobRecord, noted: Sequence[Happening]) -> list[Happening]:
    """What happened to a job, in order."""
    kinds = {each.kind for each in noted if each.at_us == job.ended_at_us}
    own = [Happening(at_us=job.submitted_at_us, kind="submitted", attempt=0, actor=job.submitted_by)]
    claims = {claim.attempt: claim for claim in _claims(job, noted)}
    ends = []
    if job.ended_at_us is not None and job.state.value not in kinds:
        ends.append(Happening(at_us=job.ended_at_us, kind=job.state.value, attempt=job.attempt))
    # Stable: of things at one instant the submit comes first, then claims, and the end last.
    return sorted([*own, *claims.values(), *noted, *ends], key=lambda each: each.at_us)


def _claims(job: JobRecord, noted: Iterable[Happening]) -> Iterable[Happening]:
    """Each claim of the job, as the events that ended them and the row itself tell."""
    for each in noted:
        if isinstance(each.detail, dict) and isinstance(each.detail.get("claimed_at_us"), int):
            # What a reaper did names the holder apart, if it was known.
            by_reaper = each.kind in ("reclaimed", "timed_out")
            holder = each.detail.get("holder") if by_reaper else each.actor
            yield Happening(
                at_us=each.detail["claimed_at_us"], kind="claimed", attempt=each.attempt, actor=holder
            )
    if job.claimed_at_us is not None:
        yield Happening(at_us=job.claimed_at_us, kind="claimed", attempt=job.attempt, actor=job.holder)
