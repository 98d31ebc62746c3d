"""Errors as RFC 9457 problem documents, with the stable code that the library raises for the same fault."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType

import msgspec

from fencerow.core import errors
from fencerow.core.errors import FencerowError

CONTENT_TYPE = "application/problem+json"
RETRY_S = 5
TELL_NOTHING = "the gateway's log has the cause, under this request_id"

# By the first class of an error's ancestry that stands here. What is not here is a fault of ours: 500.
STATUS: Mapping[type[BaseException], int] = MappingProxyType(
    {
        errors.JobGone: 410,
        errors.JobNotFound: 404,
        errors.NotReady: 409,
        errors.ResultTimeout: 409,
        errors.JobFailed: 409,
        errors.JobCancelled: 409,
        errors.IllegalMove: 409,
        errors.KeyConflict: 409,
        errors.PayloadTooLarge: 413,
        errors.InvalidInput: 422,
        errors.OlderWorkers: 503,
        errors.StoreUnavailable: 503,
        errors.MalformedPayload: 409,
        errors.PayloadAltered: 409,
        errors.SealKeyUnknown: 409,
        errors.PayloadMissing: 409,
        errors.DatabaseError: 503,
    }
)
# Their texts name hosts, roles and files. The code tells an operator enough; the log has the rest.
SHUT = (errors.DatabaseError, errors.StoreUnavailable)


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is answered instead of what was asked for. `code` is stable, and docs/errors.md has a paragraph for each.

    `repeat`: whether the very same request may be sent again: "yes" (nothing was stored), "ask" (it is unknown: send it
    again under the same idempotency key, or look up `job_ids`), "no" (it would fail again).
    """

    type: str
    title: str
    status: int
    detail: str
    code: str
    repeat: str
    fix: str = ""
    state: str | None = None
    job_ids: tuple[str, ...] = ()
    request_id: str


def status_of(error: FencerowError) -> int:
    """What HTTP calls it."""
    own = getattr(error, "status", None)
    return own if isinstance(own, int) else status_of_type(type(error))


def status_of_type(kind: type[FencerowError]) -> int:
    """The same, of all errors of a kind."""
    own = getattr(kind, "status", None)
    if isinstance(own, int):
        return own
    return next((STATUS[each] for each in kind.__mro__ if each in STATUS), 500)


def problem_of(error: FencerowError, request_id: str) -> Problem:
    """The document for an error of ours."""
    status = status_of(error)
    tells = status < 500 and not isinstance(error, SHUT)
    state = getattr(error, "state", None)
    return Problem(
        type=f"urn:fencerow:{error.code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail="; ".join(filter(None, (error.what, error.why))) if tells else _shut(error, status),
        code=error.code,
        repeat=error.repeat,
        fix=error.fix if tells else TELL_NOTHING,
        state=None if state is None else str(state),
        job_ids=tuple(getattr(error, "job_ids", ())),
        request_id=request_id,
    )


def retry_after_of(error: FencerowError, status: int) -> int | None:
    """For how many seconds the caller should wait, if waiting helps."""
    own = getattr(error, "retry_after_s", None)
    if own is not None:
        return max(1, int(own + 0.999))
    return RETRY_S if status == 503 else None


def _shut(error: FencerowError, status: int) -> str:
    if status != 503:
        return "the gateway met a fault of its own"
    if error.repeat == "ask":
        return "it is unknown whether this was stored: the database's answer was lost"
    return "the database cannot be used now"
