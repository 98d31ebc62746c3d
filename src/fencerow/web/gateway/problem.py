"""Errors as RFC 9457 problem documents, with the stable code that the library raises for the same fault."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType

import msgspec

from fencerow import errors as wings
from fencerow.core import errors
from fencerow.core.errors import FencerowError
from fencerow.web.errors import TooLate, TooManyRequests, UnderMaintenance, Unready
from fencerow.web.gateway.shapes import ErrorDocument, error_document

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
        errors.RowRefused: 422,
        errors.DatabaseError: 503,
        errors.WorkerNotFound: 404,
        errors.WorkerGone: 409,
        errors.OrderRefused: 409,
        wings.UnknownSchedule: 404,
        wings.ScheduleTaken: 409,
        wings.UnknownZone: 409,
        wings.MutexNotFound: 404,
        wings.UnknownBackfill: 404,
        wings.InvalidTopic: 422,
        wings.UnknownGroup: 404,
        wings.HandoverNotFound: 404,
        wings.HandoverLost: 409,
        wings.FlowNotFound: 404,
        wings.FlowConflict: 409,
        wings.FlowEnded: 409,
        wings.NoFlowResult: 409,
        wings.SignalRefused: 409,
    }
)
STATES: Mapping[type[BaseException], str] = MappingProxyType(
    {errors.JobFailed: "failed", errors.JobCancelled: "cancelled"}
)
# Where msgspec and our own checks of arguments say that something does not fit.
OF_DATA = re.compile(r"at `\$([^`]*)`")
OF_ARGUMENTS = re.compile(r"do not fit: ([\w.\[\]]+): ")
# What any request may meet that asks the database.
OF_DATABASE = (
    errors.DatabaseError,
    errors.Unavailable,
    errors.Busy,
    errors.ReadOnly,
    errors.StorageFull,
    errors.SchemaMissing,
    errors.SchemaTooNew,
    errors.SchemaTooOld,
    errors.SchemaTampered,
)
# Their texts name hosts, roles and files. The code tells an operator enough; the log has the rest.
SHUT = (errors.DatabaseError, errors.StoreUnavailable)

# What the gateway says of itself, also by a status from 500 on: nobody else's words are in it.
OWN = (TooLate, TooManyRequests, UnderMaintenance, Unready)


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is answered instead of what was asked for. `code` is stable, and docs/errors.md has a paragraph for each.

    `repeat`: whether the very same request may be sent again: "yes" (nothing was stored), "ask" (it is unknown: send it
    again under the same idempotency key, or look up `job_ids`), "no" (it would fail again). `where`: the part of the
    body that is refused, as a path below `$`, or of the query, behind `?`. `state` is that of the job that was found,
    and `error` what its last attempt reported, if it failed. `reason`: one word for why an attempt that is
    worked over HTTP takes nothing any more.
    """

    type: str
    title: str
    status: int
    detail: str
    code: str
    repeat: str
    fix: str = ""
    where: str = ""
    state: str | None = None
    error: ErrorDocument | None = None
    job_ids: tuple[str, ...] = ()
    reason: str = ""
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
    tells = isinstance(error, OWN) or (status < 500 and not isinstance(error, SHUT))
    state = getattr(error, "state", None) or STATES.get(type(error))
    return Problem(
        type=f"urn:fencerow:{error.code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail="; ".join(filter(None, (error.what, error.why))) if tells else _shut(error, status),
        code=error.code,
        repeat=error.repeat,
        fix=error.fix if tells else TELL_NOTHING,
        where=where_of(error),
        state=None if state is None else str(state),
        error=error_document(_reported(error)),
        job_ids=tuple(getattr(error, "job_ids", ())),
        reason=error.reason if isinstance(error, wings.AttemptOver) else "",
        request_id=request_id,
    )


def placed(error: FencerowError, where: str) -> FencerowError:
    """The error, of this part of what the caller sent."""
    vars(error)["where"] = where
    return error


def missing(error: FencerowError) -> FencerowError:
    """The error, where what was asked for is not there: 404. In a body that names it, the same does not fit: 422."""
    vars(error)["status"] = int(HTTPStatus.NOT_FOUND)
    return error


def where_of(error: FencerowError) -> str:
    """The part of the caller's data that is refused; nothing where that is all of it."""
    base = str(vars(error).get("where", "$"))
    if isinstance(error, errors.InvalidArguments):
        found = OF_ARGUMENTS.search(error.what)
        return f"{base}.args" + (f".{found[1]}" if found else "")
    found = OF_DATA.search(error.why) if isinstance(error, errors.InvalidInput) else None
    if base == "?":
        return base + (found[1].removeprefix(".") if found else "")
    place = base + (found[1] if found else "")
    return "" if place == "$" else place


def _reported(error: FencerowError) -> dict[str, str] | None:
    if not isinstance(error, errors.JobFailed):
        return None
    told = error.error
    return {"type": told.type, "message": told.message, "code": told.code}


def retry_after_of(error: FencerowError, status: int) -> int | None:
    """For how many seconds the caller should wait, if waiting helps."""
    own = getattr(error, "retry_after_s", None)
    if own is not None:
        return max(1, int(own + 0.999))
    return RETRY_S if status == 503 else None


def _shut(error: FencerowError, status: int) -> str:
    if isinstance(error, errors.RowRefused):
        return "a rule of the database refuses this"
    if status != 503:
        return "the gateway met a fault of its own"
    if error.repeat == "ask":
        return "it is unknown whether this was stored: the database's answer was lost"
    return "the database cannot be used now"
