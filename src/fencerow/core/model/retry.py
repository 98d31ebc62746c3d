"""The choice between another attempt and the end of the job. Pure: no clock, no database."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from fencerow.core.errors import DeclarationError
from fencerow.core.model.backoff import Backoff
from fencerow.core.model.classify import is_retryable, leaves, retry_after_s
from fencerow.core.model.control import DELAY_S_MAX, Fail, Retry, Snooze, Suspend
from fencerow.core.model.describe import FailureCode, describe
from fencerow.core.model.outcome import Failed, Retried, Snoozed, Suspended
from fencerow.db.text import shown

Predicate = Callable[[BaseException], bool]
Matcher = type[BaseException] | Predicate
# What a handler's author writes: one matcher, or several.
Matchers = Matcher | tuple[Matcher, ...]
BackoffFunction = Callable[[int], float]
ATTEMPTS_MAX = 10_000


@dataclass(frozen=True)
class RetryRule:
    """Which failures of a job lead to another attempt, and when. `fail_on` is asked first, then `retry_on`,
    then `is_retryable`.

    `retry_on` and `fail_on` take an error type, a function of the error, or a tuple of these. `backoff` may
    be a function: it gets the number of failures, counted from 1, and returns seconds.

    Raises:
        DeclarationError: one of them is something else.
    """

    attempts_max: int = 3
    backoff: Backoff | BackoffFunction = Backoff()  # noqa: RUF009 - it is frozen
    retry_on: Matchers = ()
    fail_on: Matchers = ()

    def __post_init__(self) -> None:
        if type(self.attempts_max) is not int or not 1 <= self.attempts_max <= ATTEMPTS_MAX:
            raise DeclarationError(
                f"attempts_max is {shown(self.attempts_max)}",
                f"an integer from 1 to {ATTEMPTS_MAX} is expected",
                "correct attempts_max",
            )
        if not isinstance(self.backoff, Backoff) and not callable(self.backoff):
            raise DeclarationError(
                f"backoff is of type {type(self.backoff).__name__}",
                "a Backoff or a function is expected",
                "pass Backoff(base_s=...)",
            )
        for what in ("retry_on", "fail_on"):
            _check_matchers(what, _several(getattr(self, what)))

    def permits(self, error: BaseException) -> bool:
        """Whether this error permits another attempt."""
        members = tuple(leaves(error))
        if any(_matches(self.fail_on, each) for each in (error, *members)):
            return False
        if _matches(self.retry_on, error):
            return True
        return all(_matches(self.retry_on, each) or is_retryable(each) for each in members)


def after_failure(
    rule: RetryRule,
    error: BaseException,
    failures: int,
    attempts_max: int,
    snoozes: int,
    snoozes_max: int,
    random: Callable[[], float],
    now: datetime | None = None,
) -> Retried | Failed | Snoozed | Suspended:
    """Choose what a failed attempt becomes.

    `failures` and `snoozes` are those spent before this one; `attempts_max` is the job's own, which may
    differ from the rule's. `now` is only needed to understand a Retry-After that is a date.
    """
    told = _sole(error)
    if isinstance(told, Suspend):
        return Suspended(told.reason)
    if isinstance(told, Snooze):
        return _after_snooze(told, snoozes, snoozes_max)
    if isinstance(told, Fail):
        return Failed(describe(told, FailureCode.CHOSEN))
    if not isinstance(told, Retry) and not rule.permits(error):
        return Failed(describe(error, FailureCode.PERMANENT))
    if failures + 1 >= attempts_max:
        return Failed(describe(error, FailureCode.ATTEMPTS_EXHAUSTED))
    delay_s = _delay_s(rule, told, failures + 1, random, now)
    # Described last: a broken backoff function has left a note on the error.
    return Retried(delay_s, describe(error))


def _after_snooze(snooze: Snooze, snoozes: int, snoozes_max: int) -> Snoozed | Failed:
    if snoozes >= snoozes_max:
        record = describe(snooze, FailureCode.SNOOZES_EXHAUSTED)
        return Failed(
            replace(record, message=f"snoozed {snoozes} times, the most allowed; last: {record.message}")
        )
    return Snoozed(snooze.delay_s, snooze.reason)


def _delay_s(
    rule: RetryRule, error: BaseException, failures: int, random: Callable[[], float], now: datetime | None
) -> float:
    if isinstance(error, Retry) and error.after_s is not None:
        return error.after_s
    own = _backoff_s(rule, error, failures, random)
    asked = retry_after_s(error, now)
    # Never earlier than the other side asked for.
    return own if asked is None else max(own, asked)


def _backoff_s(rule: RetryRule, error: BaseException, failures: int, random: Callable[[], float]) -> float:
    if isinstance(rule.backoff, Backoff):
        return rule.backoff.delay_s(failures, random)
    try:
        delay_s = float(rule.backoff(failures))
        reason = "" if math.isfinite(delay_s) and delay_s >= 0 else f"returned {delay_s}"
    except Exception as broken:
        delay_s, reason = 0.0, f"raised {type(broken).__name__}"
    if not reason:
        return min(delay_s, DELAY_S_MAX)
    # The job must not be lost to its backoff function; the note shows up in the traceback that is kept.
    _note(error, f"the job's backoff function {reason}; the default backoff was used")
    return Backoff().delay_s(failures, random)


def _matches(matchers: Matchers, error: BaseException) -> bool:
    return any(_matches_one(matcher, error) for matcher in _several(matchers))


def _matches_one(matcher: Matcher, error: BaseException) -> bool:
    if isinstance(matcher, type):
        return isinstance(error, matcher)
    try:
        return bool(matcher(error))
    except Exception as broken:
        _note(error, f"a retry_on or fail_on function raised {type(broken).__name__} and was passed over")
        return False


def _note(error: BaseException, text: str) -> None:
    # An error may refuse changes (a frozen dataclass does); the decision matters more than the note.
    with suppress(Exception):
        error.add_note(text)


def _sole(error: BaseException) -> BaseException:
    # A task group wraps even a single error of its tasks.
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _several(matchers: Matchers) -> tuple[Matcher, ...]:
    return matchers if isinstance(matchers, tuple) else (matchers,)


def _check_matchers(what: str, matchers: tuple[Matcher, ...]) -> None:
    for matcher in matchers:
        good = issubclass(matcher, BaseException) if isinstance(matcher, type) else callable(matcher)
        if not good:
            raise DeclarationError(
                f"{what} holds {shown(matcher)}",
                "error types or functions of the error are expected",
                f"correct {what}",
            )
