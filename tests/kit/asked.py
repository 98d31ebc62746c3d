"""Submits of jobs under keys of either kind, as the store takes them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from fencerow.core.model.job import KeyClaim, NewJob
from fencerow.core.model.submission import Submission, SubmitResult
from fencerow.core.store.storing import resubmit_asked
from fencerow.db.run import Operation
from fencerow.unique.rules import UniqueClaim


def submit_keyed(
    jobs: Sequence[NewJob], claims: Sequence[KeyClaim], *, own: Collection[str] = ()
) -> Operation[list[SubmitResult]]:
    """Jobs under idempotency keys; `own`: the ids that the caller chose."""
    return resubmit_asked(
        [Submission(job, claim, job.id in own) for job, claim in zip(jobs, claims, strict=True)]
    )


def as_unique(job: NewJob, claim: UniqueClaim, key: KeyClaim | None = None, **more: Any) -> Submission:
    """A job under a unique key."""
    terms = {**(job.terms or {}), **claim.terms}
    return Submission(msgspec.structs.replace(job, terms=terms), key, **more)
