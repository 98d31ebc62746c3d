"""What wings settle of a submit before any of it is stored: whether it stores a job, or comes to one that is there.

They say so when the package is imported; see `core/wing.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from fencerow.core.db.run import Steps
    from fencerow.core.model.job import NewJob
    from fencerow.core.model.submission import Submission
    from fencerow.core.store.submit import Submitted


class Settled(Protocol):
    """What submits came to. `answers`: by the ids of their jobs. `inserted`: the jobs that are to be stored, as they
    are by now, since a later submit of the same call may have changed one."""

    @property
    def answers(self) -> Mapping[str, Submitted]: ...

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


_of_wings: dict[str, Settle] = {}


def settle_by(wing: str, settle: Settle) -> None:
    """Said once for each wing: submits with its term come to what it says."""
    _of_wings[wing] = settle


def settles(wing: str) -> bool:
    """Whether this wing decides what submits with its term come to. It writes of it what is to be written."""
    return wing in _of_wings


def is_settled(job: NewJob) -> bool:
    """Whether a wing decides what the submit of this job comes to."""
    return job.terms is not None and not _of_wings.keys().isdisjoint(job.terms)


def settled_terms(job: NewJob) -> dict[str, Any]:
    """The terms of a job by which wings decide."""
    return {wing: term for wing, term in (job.terms or {}).items() if wing in _of_wings}


def settle(asked: Sequence[Submission], *, own: Collection[str], again: bool) -> Steps[list[Settled]]:
    """What each wing settles of these submits, in the order of the wings."""
    settled: list[Settled] = []
    for wing, decide in _of_wings.items():
        termed = [each for each in asked if each.job.terms is not None and wing in each.job.terms]
        if termed:
            settled.append((yield from decide(termed, own=own, again=again)))
    return settled
