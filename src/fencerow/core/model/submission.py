"""One job to store, checked already; and a call of which one is made."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from fencerow.core.model.job import KeyClaim, NewJob


class PreparedCall(msgspec.Struct, frozen=True, gc=False):
    """One call of a declared job, checked and encoded, not yet submitted. Made by `job.call(...)`."""


class Submission(msgspec.Struct, frozen=True, gc=False):
    """One job to store, checked already. `key` claims an idempotency key; `own_id`: the caller chose the id. `pack`:
    its arguments as they are stored with the job of another id, which it may replace."""

    job: NewJob
    key: KeyClaim | None = None
    own_id: bool = False
    pack: Callable[[str], bytes] | None = None


class SubmitResult(msgspec.Struct, frozen=True, gc=False):
    """What a submit came to: the job's id, and whether an earlier submit had made it; `replaced`: that one is now what
    this submit says."""

    id: str
    replay: bool = False
    replaced: bool = False
