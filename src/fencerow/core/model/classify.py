"""Whether the same work may succeed if it is tried again, read from the error alone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from fencerow.core.errors import DeclarationError, InvalidInput, MalformedPayload

# 409 is retried: mostly somebody else was quicker or still holds the thing, or a first request under the same
# idempotency key is still under way. A true conflict costs the attempts left, no more.
RETRY_STATUSES = frozenset({408, 409, 423, 425, 429})
TRANSIENT = (TimeoutError, ConnectionError)
# The same arguments would be refused again. Validation errors of pydantic and msgspec are ValueErrors.
# An undefined name is a fault of the code alone; an attribute or a key that is missing may be one of an answer.
PERMANENT = (ValueError, TypeError, NameError, InvalidInput, MalformedPayload, DeclarationError)
RETRY_AFTER_S_MAX = 24 * 3600.0
GROUP_DEPTH_MAX = 20


def is_retryable(error: BaseException) -> bool:
    """Whether another attempt makes sense. The first of these that applies decides:

    1. the error's own `retryable` or `should_retry`, a bool or a function without arguments;
    2. an HTTP status it carries: 5xx, 408, 409, 423, 425, 429 yes, any other 4xx no;
    3. timeouts and lost connections yes, as well as bytes or JSON that cannot be decoded, which mostly come from half
    an answer or a proxy's page; any other ValueError, TypeError, NameError and what Fencerow refused as input no;
    4. everything else yes. Even a KeyError or an AttributeError may come from an answer that was cut short, and
    attempts are limited.

    A group is retryable if each error in it is.
    """
    return all(_leaf_is_retryable(leaf) for leaf in leaves(error))


def retry_after_s(error: BaseException, now: datetime | None = None) -> float | None:
    """How many seconds the other side asked us to wait, at most a day; None if it did not say.

    Reads `.retry_after` (seconds or a timedelta), then the Retry-After header of `.response` or the error.
    A date in that header needs `now`, which must be aware. The longest wait within a group counts.
    """
    waits = [wait for leaf in leaves(error) if (wait := _leaf_wait_s(leaf, now)) is not None]
    return max(waits, default=None)


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors inside a group, however deep; of any other error, the error itself."""
    yield from _leaves(error, 0)


def _leaves(error: BaseException, depth: int) -> Iterator[BaseException]:
    if not isinstance(error, BaseExceptionGroup) or depth >= GROUP_DEPTH_MAX:
        yield error
        return
    for member in error.exceptions:
        yield from _leaves(member, depth + 1)


def _leaf_is_retryable(error: BaseException) -> bool:
    own = _own_word(error)
    if own is not None:
        return own
    status = _status(error)
    if status is not None and status >= 400:
        return status >= 500 or status in RETRY_STATUSES
    return isinstance(error, TRANSIENT) or _is_undecodable(error) or not isinstance(error, PERMANENT)


def _is_undecodable(error: BaseException) -> bool:
    """Text of another program that is none. Decoders of JSON name their errors alike, and derive them differently."""
    return (
        isinstance(error, UnicodeDecodeError)
        or any(cls.__name__ == "JSONDecodeError" for cls in type(error).__mro__)
        or type(error) is msgspec.DecodeError
    )


def _own_word(error: BaseException) -> bool | None:
    for name in ("retryable", "should_retry"):
        word = _attribute(error, name)
        if callable(word):
            word = _called(word)
        if isinstance(word, bool):
            return word
    return None


def _status(error: BaseException) -> int | None:
    candidates = (
        _attribute(error, "status_code"),
        _attribute(error, "status"),
        _attribute(_attribute(error, "response"), "status_code"),
        _attribute(_attribute(error, "response"), "status"),
        _attribute(error, "code"),
    )
    for value in candidates:
        # The range keeps out other numbers of that name: exit codes, codes of WebSocket closes.
        if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
            return int(value)
    return None


def _leaf_wait_s(error: BaseException, now: datetime | None) -> float | None:
    own = _attribute(error, "retry_after")
    if own is not None:
        found = _wait_s(own, now)
        if found is not None:
            return found
    for holder in (_attribute(error, "response"), error):
        found = _wait_s(_header(_attribute(holder, "headers")), now)
        if found is not None:
            return found
    return None


def _header(headers: Any) -> Any:
    get = _attribute(headers, "get")
    if not callable(get):
        return None
    try:
        return get("Retry-After") or get("retry-after")
    except Exception:
        return None


def _wait_s(value: Any, now: datetime | None) -> float | None:
    try:
        seconds = _seconds(value, now)
        return min(seconds, RETRY_AFTER_S_MAX) if seconds is not None and seconds >= 0 else None
    except Exception:
        # Whatever a server wrote there, it must not break the decision.
        return None


def _seconds(value: Any, now: datetime | None) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return float(value)
    total: Any = _attribute(value, "total_seconds")
    if callable(total):
        total_s: Any = total()
        return float(total_s)
    text = value.decode("ascii") if isinstance(value, bytes) else str(value).strip()
    if text.replace(".", "", 1).isascii() and text.replace(".", "", 1).isdigit():
        return float(text)
    return _until_s(text, now)


def _until_s(date: str, now: datetime | None) -> float | None:
    if now is None:
        return None
    from email.utils import parsedate_to_datetime  # seldom needed, and it brings fifteen modules

    until = parsedate_to_datetime(date)
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max((until - now).total_seconds(), 0.0)


def _attribute(holder: Any, name: str) -> Any:
    # A property of a foreign error may raise: `.request` of httpx does.
    try:
        return getattr(holder, name, None)
    except Exception:
        return None


def _called(word: Any) -> Any:
    try:
        return word()
    except Exception:
        return None
