"""The rules that a stored job may need, and of which an older release knows nothing.

A worker says on its row which ones it knows. A submit that needs one is refused while a living worker does not know it:
such a worker would run the job, and would not keep the rule.
"""

from __future__ import annotations

from collections.abc import Iterable

from fencerow.core.model.job import NewJob

EXCLUSIVE = "exclusive"
KNOWN = (EXCLUSIVE,)


def needed(jobs: Iterable[NewJob]) -> frozenset[str]:
    """The rules that these jobs need."""
    return frozenset({EXCLUSIVE}) if any(job.exclusive is not None for job in jobs) else frozenset()
