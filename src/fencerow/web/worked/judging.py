"""What an endpoint's reply makes of its attempt. No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import msgspec

from fencerow.core.model.classify import RETRY_AFTER_S_MAX, RETRY_STATUSES
from fencerow.db.text import shortened
from fencerow.web.webhooks.posting import ReceiverReply
from fencerow.web.worked.answers import FailedAnswer
from fencerow.web.worked.errors import WorkedFailed, WorkedUnfit

LATER: Final = 202
NO_CONTENT: Final = b"null"  # the result of a reply without a body
SAID_LENGTH_MAX: Final = 500
CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


@dataclass(frozen=True, slots=True)
class LaterReply:
    """The endpoint answers by the callback."""


@dataclass(frozen=True, slots=True)
class Result:
    """The endpoint has done it: the JSON text of its result."""

    text: bytes


class _Said(msgspec.Struct, frozen=True):
    """What is understood of the body of an error: a problem document (RFC 9457), with two members of ours."""

    title: str | None = None
    detail: str | None = None
    message: str | None = None
    retry: bool | None = None
    retry_after_s: float | None = None


def judged(reply: ReceiverReply, bytes_max: int) -> Result | LaterReply | WorkedFailed | WorkedUnfit:
    """By the status, and by what the body of an error says of a retry. `bytes_max`: how much of a body was kept."""
    if reply.status == LATER:
        return LaterReply()
    if not 200 <= reply.status < 300:
        return _failure(reply)
    if not reply.is_whole and len(reply.body_start) < bytes_max:
        return WorkedFailed("the endpoint's reply ended before its end", "", "look at what stands between")
    if not reply.is_whole:
        return WorkedUnfit(
            "the endpoint's result is larger than what is read of a reply",
            f"at most {bytes_max} bytes are read",
            "store the data elsewhere and answer with a reference, or raise reply_bytes_max",
        )
    return Result(reply.body_start.strip() or NO_CONTENT)


def failure_of(answer: FailedAnswer) -> WorkedFailed:
    """What an endpoint's answer by the callback makes of its attempt, if it says that it failed."""
    return WorkedFailed(
        _told("the endpoint answered that it failed", answer.message),
        "",
        "its own log has more",
        retryable=answer.retry is not False,
        retry_after=_wait_s(answer.retry_after_s),
    )


def _failure(reply: ReceiverReply) -> WorkedFailed:
    said = _said(reply.body_start)
    by_status = reply.status >= 500 or reply.status in RETRY_STATUSES
    retryable = by_status if said.retry is None else said.retry
    wait_s = said.retry_after_s if said.retry_after_s is not None else reply.retry_after_s
    return WorkedFailed(
        _told(f"the endpoint answered {reply.status}", said.detail or said.title or said.message or ""),
        "it is tried again by the job's rule" if retryable else "that does not change by itself",
        "its own log has more",
        retryable=retryable,
        retry_after=_wait_s(wait_s) if retryable else None,
        answered=reply.status,
    )


def _said(body: bytes) -> _Said:
    """What can be read of it: an error page of a proxy is none of ours."""
    try:
        return msgspec.json.decode(body, type=_Said)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Said()


def _told(what: str, said: str) -> str:
    plain = shortened(CONTROLS.sub(" ", said).strip(), SAID_LENGTH_MAX)
    return f"{what}: {plain}" if plain else what


def _wait_s(wait_s: float | None) -> float | None:
    return None if wait_s is None else min(max(0.0, wait_s), RETRY_AFTER_S_MAX)
