"""What a wing knows of the places where jobs wait before they may run. The core keeps at which a job waits, no more.

Said once, when the package is imported; see `core/wing.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fencerow.core.model.job import NewJob
    from fencerow.db.run import Param, Statement, Steps


class Gating(Protocol):
    """Knows the places, and who is to be told of them."""

    def said(self, job: NewJob) -> tuple[object, ...]:
        """What a document says of a job that is named, behind its arguments: where it waits first, or None; then what
        the wing reads of it where a submit writes its columns (`values that a submit writes`)."""
        ...

    def said_alone(self, job: NewJob) -> str | None:
        """The same of one that waits nowhere and is stored by its columns: what the wing reads at `values of a queued
        submit`."""
        ...

    def copied(self, job: NewJob) -> tuple[object, ...]:
        """The same where a COPY brings it: where it waits first, then the columns themselves."""
        ...

    def placed(self, jobs: Sequence[NewJob]) -> Steps[list[NewJob]]:
        """These new jobs, each with where it waits first (`at_limit`), as far as a look without locks tells."""
        ...

    def turned(self, jobs: Sequence[NewJob]) -> Steps[list[NewJob]]:
        """These new jobs, those with their turn (`has_turn`) that get it at once.

        Locks what it takes to give turns until the transaction ends, so that is to be one of ours, and short. It comes
        before all other locks.
        """
        ...

    def stands_alone(self, job: NewJob) -> bool:
        """Whether `alone` stores this job, which needs a turn and comes alone."""
        ...

    def alone(self, job: NewJob, params: Mapping[str, Param]) -> Statement:
        """What stores it on PostgreSQL, in a transaction of ours: with its turn, or at where it waits, and then says
        that it comes. Its first row begins with whether it has its turn. `params`: those of `submit_one`."""
        ...

    def free(self, jobs: Sequence[NewJob]) -> Steps[list[NewJob]]:
        """Those of new jobs that seem to have their turn at once, as far as a look without locks tells."""
        ...

    def turned_of_free(self, jobs: Sequence[NewJob]) -> Steps[list[NewJob]]:
        """`turned` of what `free` found in this transaction."""
        ...

    def come(self, jobs: Sequence[NewJob]) -> Steps[None]:
        """Say that new jobs come to where they wait, before their insert and in its transaction.

        Raises:
            FencerowError: one of them may not come there. Nothing was written.
        """
        ...

    def look_again(self, places: Collection[str]) -> Steps[None]:
        """Say that these places are to be looked at: somebody left them, or comes at another time."""
        ...


_make: Callable[[], Gating] | None = None
_gating: Gating | None = None


def gate_by(make: Callable[[], Gating]) -> None:
    """From now on there is this, made by the first who asks for it."""
    global _make, _gating
    _make, _gating = make, None


def gating() -> Gating:
    """What there is. Only jobs that are named need it, and a wing brought the options that name them."""
    global _gating
    if _gating is None:
        assert _make is not None, "no wing gives turns"
        _gating = _make()
    return _gating
