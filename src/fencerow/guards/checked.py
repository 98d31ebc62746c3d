"""What is checked before anything is asked of the database: keys, times, owners, fingerprints."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import msgspec

from fencerow.core.errors import InvalidInput, InvalidPayload, LeaseLost
from fencerow.core.model.ids import new_id
from fencerow.core.model.seconds import in_seconds, is_finite
from fencerow.core.model.value import Misfit, ValueType
from fencerow.core.store.running import Running, running
from fencerow.db.run import Steps
from fencerow.db.text import check_text, shown

KEY_LENGTH_MAX = 256
LIFETIME_S_MAX = 3650 * 86400.0
STALE_S_MIN = 1.0

_ANY = ValueType.of(Any, "a fingerprint")


def check_seconds(value: object, what: str, least: float, most: float = LIFETIME_S_MAX) -> float:
    """A number of seconds within bounds.

    Raises:
        InvalidInput: it is none.
    """
    value = in_seconds(value)
    if not isinstance(value, (int, float)) or not is_finite(value):
        raise InvalidInput(
            f"{what} is {shown(value)}",
            f"it is a number of seconds from {least:g} to {most:g}",
            f"correct {what}",
        )
    if not least <= value <= most:
        raise InvalidInput(
            f"{what} is {value:g}", f"it must lie between {least:g} and {most:g}", f"correct {what}"
        )
    return float(value)


def check_key(value: object, what: str) -> str:
    """A key that can be kept and shown."""
    return check_text(value, what, KEY_LENGTH_MAX)


def fingerprint_of(payload: Any) -> str:
    """What tells two payloads apart: equal data has equal fingerprints, in whatever order its keys stand.

    Raises:
        InvalidPayload: it holds something that cannot be written as JSON.
    """
    if payload is None:
        return ""
    if isinstance(payload, (bytes, bytearray, memoryview)):
        return hashlib.sha256(b"bytes\0" + bytes(payload)).hexdigest()
    try:
        raw = _ANY.pack(payload, "fingerprint")
    except Misfit as misfit:
        raise InvalidPayload(
            f"fingerprint{misfit.path}: {misfit.reason}",
            "a fingerprint is made of data that can be written as JSON, or of bytes",
            "pass plain data",
        ) from None
    sorted_raw = msgspec.json.encode(msgspec.json.decode(raw), order="deterministic")
    return hashlib.sha256(b"json\0" + sorted_raw).hexdigest()


class Owner(NamedTuple):
    """Who works, and in which of its runs: a later run may take up what an earlier one has left behind."""

    name: str
    attempt: int | None


def owner_now(given: str | None, attempt: int | None) -> Owner:
    """Who works here: whoever was named, else the job this code runs in, else somebody new.

    Raises:
        InvalidInput: the name cannot be kept, or the attempt is no number or nobody's.
    """
    if given is None and attempt is not None:
        raise InvalidInput(
            f"attempt is {shown(attempt)} and no owner was named",
            "an attempt belongs to an owner; inside a job Fencerow knows both",
            "pass owner= too, or leave attempt out",
        )
    if given is not None:
        return Owner(check_text(given, "the owner", KEY_LENGTH_MAX), _number(attempt))
    here = running.get()
    if here is not None:
        return Owner(f"job:{here.job_id}", here.attempt)
    return Owner(f"call:{new_id()}", None)


def _number(attempt: object) -> int | None:
    if attempt is None:
        return None
    if isinstance(attempt, bool) or not isinstance(attempt, int) or not 0 <= attempt < 2**63:
        raise InvalidInput(
            f"attempt is {shown(attempt)}",
            "it is a whole number that each later run of the owner raises",
            "correct the attempt",
        )
    return attempt


def hold_attempt(attempt: Running | None) -> Steps[None]:
    """Lock the job's row against a newer attempt for the rest of this transaction, if this is done in a job.

    Raises:
        LeaseLost: the attempt no longer holds its job.
    """
    if attempt is None:
        return
    if (yield from attempt.still_held().steps()) is None:
        raise LeaseLost(
            f"attempt {attempt.attempt} no longer holds job {attempt.job_id}",
            "it ended or belongs to a newer attempt",
            "stop working on it",
        )
