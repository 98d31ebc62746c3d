"""Another attempt, or the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fencerow.core.model.backoff import Backoff
from fencerow.core.model.control import Fail, Retry, Snooze
from fencerow.core.model.outcome import Failed, Retried, Snoozed, Suspended
from fencerow.core.model.retry import RetryRule, after_failure
from fencerow.errors import DeclarationError, InvalidInput

RULE = RetryRule(backoff=Backoff(jitter=0))


def decide(
    error: BaseException, rule: RetryRule = RULE, failures: int = 0, attempts_max: int = 3, snoozes: int = 0
) -> Retried | Failed | Snoozed:
    decided = after_failure(rule, error, failures, attempts_max, snoozes, 48, lambda: 0.0)
    assert not isinstance(decided, Suspended)
    return decided


def test_a_passing_error_is_tried_three_times_with_growing_delays() -> None:
    outcomes = [decide(RuntimeError("x"), failures=failures) for failures in (0, 1, 2)]

    assert [each.delay_s for each in outcomes[:2] if isinstance(each, Retried)] == [5, 10]
    assert isinstance(outcomes[2], Failed)
    assert outcomes[2].error.code == "attempts_exhausted"


def test_a_permanent_error_fails_after_one_attempt() -> None:
    outcome = decide(ValueError("x"))

    assert isinstance(outcome, Failed)
    assert outcome.error.code == "permanent_error"


def test_the_attempts_of_the_job_count_and_not_those_of_the_rule() -> None:
    assert isinstance(decide(RuntimeError(), failures=5, attempts_max=7), Retried)
    assert isinstance(decide(RuntimeError(), failures=0, attempts_max=1), Failed)


def test_a_snooze_spends_nothing_until_there_were_too_many() -> None:
    assert decide(Snooze(1800, "busy"), failures=2, snoozes=47) == Snoozed(1800, "busy")

    outcome = decide(Snooze(1800, "busy"), snoozes=48)
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "snoozes_exhausted"
    assert outcome.error.message == "snoozed 48 times, the most allowed; last: busy"


def test_the_handler_may_say_when_or_never() -> None:
    said = decide(Retry(after_s=0))
    assert isinstance(said, Retried) and said.delay_s == 0
    unsaid = decide(Retry(), failures=1)
    assert isinstance(unsaid, Retried) and unsaid.delay_s == 10
    assert isinstance(decide(Retry(after_s=1), failures=2), Failed)

    never = decide(Fail("gone"))
    assert isinstance(never, Failed)
    assert (never.error.code, never.error.message) == ("failed_by_handler", "gone")


def test_a_task_group_does_not_hide_what_the_handler_said() -> None:
    assert decide(ExceptionGroup("", [ExceptionGroup("", [Snooze(5)])])) == Snoozed(5, "")
    outcome = decide(ExceptionGroup("", [Fail("gone"), OSError()]))
    assert isinstance(outcome, Failed) and outcome.error.code == "permanent_error"


def test_fail_on_goes_before_retry_on_before_the_rest() -> None:
    rule = RetryRule(retry_on=(ValueError, OSError), fail_on=(lambda error: "quota" in str(error), KeyError))

    assert isinstance(decide(ValueError("x"), rule), Retried)
    assert isinstance(decide(ValueError("quota"), rule), Failed)
    assert isinstance(decide(KeyError("x"), rule), Failed)
    assert isinstance(decide(TypeError("x"), rule), Failed)
    assert isinstance(decide(ExceptionGroup("", [OSError(), KeyError()]), rule), Failed)
    assert isinstance(decide(ExceptionGroup("", [OSError(), ValueError()]), rule), Retried)


def test_a_broken_predicate_is_noted_and_passed_over() -> None:
    def broken(error: BaseException) -> bool:
        raise LookupError

    outcome = decide(RuntimeError("x"), RetryRule(fail_on=broken))

    assert isinstance(outcome, Retried)
    assert "raised LookupError" in outcome.error.traceback


def test_a_backoff_may_be_a_function() -> None:
    outcome = decide(RuntimeError("x"), RetryRule(backoff=lambda failures: failures * 7), failures=1)

    assert isinstance(outcome, Retried) and outcome.delay_s == 14


@pytest.mark.parametrize("function", [lambda n: -1, lambda n: float("nan"), lambda n: "x", lambda n: 1 / 0])
def test_a_broken_backoff_function_does_not_lose_the_job(function: Callable[[int], Any]) -> None:
    outcome = decide(RuntimeError("x"), RetryRule(backoff=function))

    assert isinstance(outcome, Retried) and outcome.delay_s == 5
    assert "backoff function" in outcome.error.traceback


def test_retry_after_is_honoured_when_it_is_longer() -> None:
    busy = RuntimeError("busy")
    busy.retry_after = 60  # type: ignore[attr-defined]
    later = decide(busy)
    assert isinstance(later, Retried) and later.delay_s == 60

    busy.retry_after = 1  # type: ignore[attr-defined]
    sooner = decide(busy)
    assert isinstance(sooner, Retried) and sooner.delay_s == 5


@pytest.mark.parametrize("delay_s", [-1, float("nan"), float("inf"), 1e12, "5", True])
def test_delays_that_are_none_are_refused(delay_s: Any) -> None:
    with pytest.raises(InvalidInput):
        Retry(after_s=delay_s)
    with pytest.raises(InvalidInput):
        Snooze(delay_s)


def test_a_snooze_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput):
        Snooze(0)


@pytest.mark.parametrize(
    "options",
    [{"attempts_max": 0}, {"attempts_max": True}, {"backoff": 5}, {"retry_on": (int,)}, {"fail_on": "x"}],
)
def test_a_rule_that_cannot_work_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError):
        RetryRule(**options)
