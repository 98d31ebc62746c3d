"""The rules that a stored job may need, and of which the release before knows nothing.

A worker says on its row which ones it knows. A submit that needs one is refused while a living worker does not know it:
such a worker would run the job, and would not keep the rule. A rule has the name of the option that needs it,
which is None in a job that does not. It stands here from the release that brings it on, until nobody can deploy over an
older one.
"""

from __future__ import annotations

from collections.abc import Iterable

from fencerow.core.model.job import NewJob

KNOWN: tuple[str, ...] = ()  # nothing has been released yet, so there is no release before


def needed(jobs: Iterable[NewJob]) -> frozenset[str]:
    """The rules that these jobs need."""
    return frozenset(rule for job in jobs for rule in KNOWN if getattr(job, rule) is not None)


def needed_of(**options: object) -> frozenset[str]:
    """The rules that a job with these options needs."""
    return frozenset(rule for rule in KNOWN if options.get(rule) is not None)
