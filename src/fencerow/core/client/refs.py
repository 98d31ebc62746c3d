"""Naming a job: by its id, or by the idempotency key it was submitted under."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fencerow.core.errors import JobGone, JobNotFound
from fencerow.core.model.ids import parse_id
from fencerow.core.model.job import JobRecord
from fencerow.core.store import store
from fencerow.db.run import Procedure, ask
from fencerow.db.text import check_text

KEY_LENGTH_MAX = 256


@dataclass(frozen=True, slots=True)
class Key:
    """An idempotency key in its scope; the scope is the job's name unless the submit said otherwise."""

    scope: str
    key: str


Ref = str | Key


class CancelAnswer(StrEnum):
    """What a cancel did."""

    CANCELLED = "cancelled"  # it never runs again
    REQUESTED = "requested"  # it runs, and its worker was asked to stop it


def resolving(ref: Ref) -> Procedure[str]:
    """The id behind a reference.

    Raises:
        InvalidInput: it is no id.
        JobNotFound: nobody owns the key.
    """
    if isinstance(ref, str):
        return parse_id(ref)
    check_text(ref.scope, "scope", KEY_LENGTH_MAX)
    check_text(ref.key, "key", KEY_LENGTH_MAX)
    owner = yield from ask(store.key_owner(ref.scope, ref.key))
    if owner is None or owner.expired:
        raise JobNotFound(
            f"no job has the key {ref.key!r} in scope {ref.scope!r}",
            "it was never used there, or its lifetime is over",
            "check key and scope; the scope is the job's name unless a submit said otherwise",
        )
    return owner.job_id


def reading(ref: Ref) -> Procedure[JobRecord]:
    """The job behind a reference, as it stands.

    Raises:
        JobGone: the key remembers it, but it was removed.
        JobNotFound: there is no such job.
    """
    job_id = yield from resolving(ref)
    record = (yield from ask(store.read([job_id]))).get(job_id)
    if record is not None:
        return record
    if isinstance(ref, Key):
        raise JobGone(
            f"job {job_id} is gone",
            f"the key {ref.key!r} remembers it, but it was removed",
            "use another key",
        )
    raise JobNotFound(
        f"there is no job {job_id}",
        "neither live nor finished; retention may have removed it",
        "check the id",
    )
