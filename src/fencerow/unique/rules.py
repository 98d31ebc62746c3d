"""Unique jobs: under one key there is one job, for as long as a rule says."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fencerow.core.model.job import NewJob

WING: Final = "unique"  # under which a job has its term
# A retry that waits is queued: it is the same job, and never in conflict with itself.
LIVE_STATES: Final = ("waiting", "queued", "running")


class UniqueRule(msgspec.Struct, frozen=True, kw_only=True):
    """What a submit does that finds a job under its key.

    With `period_s` that job counts until so long after its submit, whatever becomes of it. With `replaces` it takes
    over what the new submit says, if no attempt of it has started. Otherwise it counts while it is in one of `states`.
    `put_off_s`: each submit makes it due so long from now, but never later than `put_off_max_s` after the first.
    """

    states: tuple[str, ...] = LIVE_STATES
    period_s: float | None = None
    replaces: bool = False
    put_off_s: float | None = None
    put_off_max_s: float = 0.0

    @property
    def holds_owner(self) -> bool:
        """Whether the job under the key must stay as it is until the submit is committed.

        A submit that counts on a job which has not started must not find, once it is committed, that it had started
        before: that attempt has not seen what was written beside the submit.
        """
        return self.replaces or (self.period_s is None and "running" not in self.states)


class UniqueClaim(msgspec.Struct, frozen=True, kw_only=True):
    """The key under which a job is to be the only one, and by what rule."""

    scope: str
    key: str
    rule: UniqueRule

    @property
    def term(self) -> dict[str, Any]:
        """As a job carries it."""
        term: dict[str, Any] = msgspec.to_builtins(self)
        return term

    @property
    def terms(self) -> dict[str, Any]:
        """The terms of a job that has no others."""
        return {WING: self.term}


def in_one_order(args: bytes) -> bytes:
    """Plain arguments with the keys of each dict in one order: those that are equal become the same bytes."""
    return msgspec.json.encode(msgspec.json.decode(args), order="deterministic")


def claim_of(job: NewJob) -> UniqueClaim:
    """The claim of a job that has one."""
    return msgspec.convert((job.terms or {})[WING], UniqueClaim)
