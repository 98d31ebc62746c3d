"""What is checked before anything is asked of the database: keys, times, owners, fingerprints."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import msgspec

from fencerow.db.statement import Steps
from fencerow.errors import InvalidInput, InvalidPayload, LeaseLost
from fencerow.model.ids import new_id
from fencerow.model.text import check_text
from fencerow.model.value import Misfit, ValueType
from fencerow.primitives.running import Running, running

KEY_LENGTH_MAX = 256
LIFETIME_S_MAX = 3650 * 86400.0
STALE_S_MIN = 1.0

_ANY = ValueType.of(Any, "a fingerprint")


def check_seconds(value: object, what: str, least: float, most: float = LIFETIME_S_MAX) -> float:
    """A number of seconds within bounds.

    Raises:
        InvalidInput: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InvalidInput(
            f"{what} is {value!r}", f"it is a number of seconds from {least:g} to {most:g}", f"correct {what}"
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


def owner_now(given: str | None) -> str:
    """Who works here: the job this code runs in, else whoever was named, else somebody new."""
    if given is not None:
        return check_text(given, "the owner", KEY_LENGTH_MAX)
    attempt = running.get()
    return f"job:{attempt.job_id}" if attempt is not None else f"call:{new_id()}"


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
