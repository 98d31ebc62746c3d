"""What wings keep of new jobs, each of those that have its term (`NewJob.terms`). They say so when the package is
imported; see `core/wing.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from fencerow.core.errors import ConfigError
from fencerow.core.store.settling import settles

if TYPE_CHECKING:
    from fencerow.core.db.run import Steps
    from fencerow.core.model.job import NewJob


class WhenStored(Protocol):
    """What a wing writes for new jobs that have its term, `job.terms[its name]`."""

    def __call__(self, jobs: Sequence[NewJob], *, again: bool) -> Steps[None]:
        """Write it, for jobs whose rows were inserted just now; in their transaction, and in the order of the submit.

        `again`: what this writes may be there already, of ids that were stored before, whether their jobs are still
        there or not; or the jobs are there, and have become what a new submit says. Whatever is raised undoes the
        submit, and nothing else.
        """
        ...


_of_wings: dict[str, WhenStored] = {}


def when_stored(wing: str, write: WhenStored) -> None:
    """Said once for each wing: jobs with its term are told to it."""
    _of_wings[wing] = write


def keep_terms(jobs: Sequence[NewJob], *, again: bool) -> Steps[None]:
    """Let each wing that has a term in one of these jobs write it, in the order of the wings; see `WhenStored`.

    Raises:
        ConfigError: one of them has a term that no wing writes.
    """
    termed: dict[str, list[NewJob]] = {}
    for job in jobs:
        for wing in job.terms or ():
            if not settles(wing):
                termed.setdefault(wing, []).append(job)
    for wing, write in _of_wings.items():
        if wing in termed:
            yield from write(termed.pop(wing), again=again)
    if termed:
        raise ConfigError(
            f"a job has a term of {min(termed)!r}, and no wing of that name writes anything for it",
            f"those that do are {', '.join(_of_wings)}",
            "name the wing as its record does, and say there what is written: Wing(stored=...)",
        )
