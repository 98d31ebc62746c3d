"""From a problem document back to the error that the library raises for the same fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from fencerow import errors
from fencerow.core.errors import (
    FencerowError,
    IllegalMove,
    InvalidInput,
    JobFailed,
    OutcomeUnknown,
    Unavailable,
)
from fencerow.core.model.describe import ErrorRecord

TITLE_MAX = 200


class ProblemRead(msgspec.Struct, frozen=True, kw_only=True):
    """What of a problem document counts here. A gateway of a later release may say more."""

    code: str
    detail: str
    fix: str = ""
    repeat: str = "no"
    state: str = ""
    job_ids: tuple[str, ...] = ()
    error: Mapping[str, str | None] | None = None
    job_id: str = ""


def refused(status: int, headers: Mapping[str, str], content: bytes) -> FencerowError:
    """The error that an answer stands for."""
    try:
        problem = msgspec.json.decode(content, type=ProblemRead)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return _unknown(status, headers)
    error = _made(problem)
    if (wait_s := _retry_after(headers)) is not None and problem.repeat != "no":
        error.retry_after_s = wait_s  # type: ignore[attr-defined]
    return error


def said_in_stream(code: str, job_id: str) -> FencerowError:
    """The error of which only the code is told, in the middle of a stream."""
    said = (
        f"the output of job {job_id} cannot be read",
        f"the gateway says {code}",
        "docs/errors.md has the code",
    )
    kind = _kinds().get(code)
    return FencerowError(*said) if kind is None else _plainly(kind, said)


def _made(problem: ProblemRead) -> FencerowError:
    kind = _kinds().get(problem.code)
    said = (problem.detail, "", problem.fix)
    if problem.repeat == "ask":
        return OutcomeUnknown(*said, job_ids=problem.job_ids)
    if kind is None:
        made = FencerowError(*said)
        made.code, made.repeat = problem.code, problem.repeat  # of a later release than ours
        return made
    if kind is JobFailed:
        return JobFailed(*said, job_id=problem.job_id, error=_record(problem.error or {}))
    if issubclass(kind, IllegalMove):
        return kind(*said, state=problem.state)
    return _plainly(kind, said)


def _plainly(kind: type[FencerowError], said: tuple[str, str, str]) -> FencerowError:
    """An error with these three lines, whatever its own constructor takes."""
    made = kind.__new__(kind)
    FencerowError.__init__(made, *said)
    return made


def _record(error: Mapping[str, str | None]) -> ErrorRecord:
    return ErrorRecord(**{name: error.get(name) or "" for name in ("type", "message", "traceback", "code")})


def _unknown(status: int, headers: Mapping[str, str]) -> FencerowError:
    """What is no problem document was said by something between: a proxy, mostly."""
    said = (
        f"the gateway's address answered {status} with {headers.get('content-type', 'no content')[:60]}",
        "that is no answer of a gateway",
        "check the address, and what stands between",
    )
    return Unavailable(*said) if status in (408, 425, 429) or status >= 500 else InvalidInput(*said)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    text = headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else None


def _kinds() -> dict[str, type[FencerowError]]:
    """The errors of the library, by their codes."""
    return {
        each.code: each
        for each in reversed(list(_below(FencerowError)))
        if each.__module__ == errors.__name__
    }


def _below(kind: type[FencerowError]) -> Iterator[type[FencerowError]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)
