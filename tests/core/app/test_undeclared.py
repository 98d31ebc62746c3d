"""Who does not say what a job returns is told where something else arrives."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from fencerow import App

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Hostile(dict[str, int]):
    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None


def told(
    app: App, function: Callable[..., Any], values: list[Any], caplog: pytest.LogCaptureFixture
) -> list[str]:
    """What is said of a job that returns these values one after the other."""
    codec = app.job(name="made")(function).handler.result
    with caplog.at_level(logging.WARNING, "fencerow.app"):
        for value in values:
            codec.encode(value)
    return [each.getMessage() for each in caplog.records]


def unsaid(): ...  # type: ignore[no-untyped-def]


def said() -> Any: ...


@pytest.mark.parametrize("value", [{1, 2}, (1, 2), NOW, {"at": [NOW]}])
def test_another_type_is_told_once(value: Any, lite_app: App, caplog: pytest.LogCaptureFixture) -> None:
    (text,) = told(lite_app, unsaid, [value, value], caplog)

    assert text.startswith(f"job made returned a {type(value).__name__}, which arrives as something else")


def test_so_is_a_type_that_cannot_be_compared(lite_app: App, caplog: pytest.LogCaptureFixture) -> None:
    assert len(told(lite_app, unsaid, [Hostile(a=1)], caplog)) == 1


@pytest.mark.parametrize("value", [None, 7, 1.5, "x", [1, {"a": None}], True])
def test_what_arrives_as_it_was_is_not(value: Any, lite_app: App, caplog: pytest.LogCaptureFixture) -> None:
    assert told(lite_app, unsaid, [value], caplog) == []


def test_nor_is_what_was_declared(lite_app: App, caplog: pytest.LogCaptureFixture) -> None:
    assert told(lite_app, said, [{1, 2}], caplog) == []
