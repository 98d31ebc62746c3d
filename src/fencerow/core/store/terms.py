"""What wings say of new jobs that have their terms (`NewJob.terms`): first, before any of them is stored, what a submit
comes to; then what they keep of those that were stored.

They say so when the package is imported; see `core/wing.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from fencerow.core.errors import ConfigError

if TYPE_CHECKING:
    from fencerow.core.model.job import NewJob
    from fencerow.core.model.submission import Submission, SubmitResult
    from fencerow.db.run import Steps


class Settled(Protocol):
    """What submits came to. `answers`: by the ids of their jobs. `inserted`: the jobs that are to be stored, as they
    are by now, since a later submit of the same call may have changed one."""

    @property
    def answers(self) -> Mapping[str, SubmitResult]: ...

    @property
    def inserted(self) -> Mapping[str, NewJob]: ...

    def write(self) -> Steps[None]:
        """Write what was settled but for the new jobs, which are inserted by now."""
        ...


class Settle(Protocol):
    """Decides what submits with a term of this wing come to, one after the other."""

    def __call__(self, asked: Sequence[Submission], *, own: Collection[str], again: bool) -> Steps[Settled]:
        """Lock what two submits of the same must not both find missing, then look and decide; in their transaction.

        `own`: ids that callers chose, which may have been stored long ago. `again`: all of them may have been stored
        before, as an answer was lost. Whatever is raised undoes the submit, and nothing else.
        """
        ...


_settling: dict[str, Settle] = {}


def settle_by(wing: str, settle: Settle) -> None:
    """Said once for each wing: submits with its term come to what it says."""
    _settling[wing] = settle


def settles(wing: str) -> bool:
    """Whether this wing decides what submits with its term come to. It writes of it what is to be written."""
    return wing in _settling


def is_settled(job: NewJob) -> bool:
    """Whether a wing decides what the submit of this job comes to."""
    return job.terms is not None and not _settling.keys().isdisjoint(job.terms)


def settled_terms(job: NewJob) -> dict[str, Any]:
    """The terms of a job by which wings decide."""
    return {wing: term for wing, term in (job.terms or {}).items() if wing in _settling}


def settle(asked: Sequence[Submission], *, own: Collection[str], again: bool) -> Steps[list[Settled]]:
    """What each wing settles of these submits, in the order of the wings."""
    settled: list[Settled] = []
    for wing, decide in _settling.items():
        termed = [each for each in asked if each.job.terms is not None and wing in each.job.terms]
        if termed:
            settled.append((yield from decide(termed, own=own, again=again)))
    return settled


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
