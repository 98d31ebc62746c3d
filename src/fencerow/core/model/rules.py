"""The rules that a stored job may need, and of which an older release knows nothing.

A worker says on its row which ones it knows. A submit that needs one is refused while a living worker does not know it:
such a worker would run the job, and would not keep the rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fencerow.core.model.job import NewJob

EXCLUSIVE = "exclusive"
LIMITS = "limits"
HANDOVER = "handover"
AFFINITY = "affinity"
KNOWN = (EXCLUSIVE, LIMITS, HANDOVER, AFFINITY)


def needed(jobs: Iterable[NewJob]) -> frozenset[str]:
    """The rules that these jobs need."""
    rules: set[str] = set()
    for job in jobs:
        rules |= needed_of(job.exclusive, job.limits, job.affinity)
        if job.handover is not None:
            rules.add(HANDOVER)
    return frozenset(rules)


def needed_of(
    exclusive: str | None, limits: Sequence[str] | None, affinity: str | None = None
) -> frozenset[str]:
    """The rules that a job with this key, these limits and this label needs."""
    given = {EXCLUSIVE: exclusive, LIMITS: limits, AFFINITY: affinity}
    return frozenset(rule for rule, value in given.items() if value is not None)
