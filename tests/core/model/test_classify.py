"""Which errors are worth another attempt, and when."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from fencerow.core.model.classify import is_retryable, retry_after_s
from fencerow.errors import AttemptTimeout, InvalidArguments, MalformedPayload, Unavailable

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def error(**attributes: Any) -> Exception:
    made = RuntimeError("x")
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


class Hostile(Exception):
    @property
    def response(self) -> Any:
        raise RuntimeError("no response")

    @property
    def retryable(self) -> Any:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "caught",
    [
        RuntimeError(),
        KeyError("a"),
        AttributeError(),
        TimeoutError(),
        ConnectionResetError(),
        OSError(101, "network is unreachable"),
        AttemptTimeout("late"),
        Unavailable("gone"),
        Hostile(),
        UnicodeDecodeError("utf-8", b"", 0, 1, ""),
        json.JSONDecodeError("", "", 0),
        msgspec.DecodeError(),
    ],
)
def test_what_may_pass_is_tried_again(caught: BaseException) -> None:
    assert is_retryable(caught)


@pytest.mark.parametrize(
    "caught",
    [
        ValueError(),
        TypeError(),
        NameError(),
        msgspec.ValidationError(),
        InvalidArguments("x"),
        MalformedPayload("x"),
    ],
)
def test_what_would_be_refused_again_is_not(caught: BaseException) -> None:
    assert not is_retryable(caught)


@pytest.mark.parametrize("status", [408, 409, 423, 425, 429, 500, 502, 503, 504, 529])
def test_statuses_that_pass(status: int) -> None:
    assert is_retryable(error(status_code=status))
    assert is_retryable(error(response=SimpleNamespace(status_code=status)))


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 410, 413, 415, 422, 451])
def test_statuses_that_stay(status: int) -> None:
    assert not is_retryable(error(status=status))
    assert not is_retryable(error(code=status))


def test_numbers_that_are_no_status_are_passed_over() -> None:
    assert is_retryable(error(code=1006))
    assert is_retryable(error(code=True, status="404"))
    assert not is_retryable(error(code=50035, status=404))


def test_the_errors_own_word_goes_before_everything() -> None:
    assert not is_retryable(error(retryable=False, status_code=503))
    assert is_retryable(error(retryable=lambda: True, status_code=400))
    assert not is_retryable(error(should_retry=False))
    assert is_retryable(error(retryable="no"))
    assert is_retryable(error(retryable=lambda: 1 / 0))


def test_a_group_is_worth_it_only_if_each_member_is() -> None:
    assert is_retryable(ExceptionGroup("", [OSError(), ExceptionGroup("", [KeyError()])]))
    assert not is_retryable(ExceptionGroup("", [OSError(), ExceptionGroup("", [ValueError()])]))


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"retry_after": 7}, 7),
        ({"retry_after": timedelta(minutes=1)}, 60),
        ({"retry_after": "soon", "headers": {"Retry-After": "3"}}, 3),
        ({"headers": {"retry-after": "2.5"}}, 2.5),
        ({"response": SimpleNamespace(headers={"Retry-After": "120"})}, 120),
        ({"response": SimpleNamespace(headers={"Retry-After": "Sat, 21 Nov 2026 12:00:30 GMT"})}, 30),
        ({"headers": {"Retry-After": "Sat, 21 Nov 2026 11:00:00 GMT"}}, 0),
        ({"headers": {"Retry-After": "Sat, 21 Nov 2037 12:00:30 GMT"}}, 86_400),
        ({"headers": {"Retry-After": "9" * 400}}, 86_400),
        ({"retry_after": -1}, None),
        ({"retry_after": float("nan")}, None),
        ({"headers": {"Retry-After": "²"}}, None),
        ({"headers": {"Retry-After": "\0\0"}}, None),
        ({"headers": 5}, None),
        ({}, None),
    ],
)
def test_the_wait_asked_for_is_read(attributes: dict[str, Any], expected: float | None) -> None:
    assert retry_after_s(error(**attributes), NOW) == expected


def test_a_date_without_now_says_nothing_and_a_hostile_error_neither() -> None:
    assert retry_after_s(error(headers={"Retry-After": "Sat, 21 Nov 2026 12:00:30 GMT"})) is None
    assert retry_after_s(Hostile()) is None
