"""What is kept of an error, whatever the error does."""

from __future__ import annotations

import pytest

from fencerow.core.model.describe import ErrorRecord, describe
from fencerow.errors import LeaseLost


def raised(error: BaseException) -> BaseException:
    password = "hunter2"
    try:
        assert password
        raise error
    except BaseException as caught:
        return caught


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def test_type_message_and_frames_are_kept_and_locals_are_not() -> None:
    record = describe(raised(ValueError("bad\tpage")))

    assert (record.type, record.message, record.code) == ("ValueError", "bad\tpage", "error")
    assert "in raised" in record.traceback and "raise error" in record.traceback
    assert "hunter2" not in record.traceback.replace('password = "hunter2"', "")


def test_an_error_that_cannot_speak_is_described_all_the_same() -> None:
    record = describe(raised(Mute()))

    assert record.type.endswith(".Mute")
    assert "RuntimeError" in record.message
    assert "in raised" in record.traceback


def test_a_huge_message_does_not_push_out_the_frames() -> None:
    record = describe(raised(ValueError("x" * 1_000_000)))

    assert len(record.message) == 2_000
    assert "in raised" in record.traceback
    assert len(record.traceback.encode()) <= 16 * 1024


def test_the_innermost_frames_of_a_deep_stack_are_kept() -> None:
    def dive(levels: int) -> None:
        if levels:
            dive(levels - 1) if levels % 2 else sink(levels)
        else:
            raise ValueError("é" * 2_000)

    def sink(levels: int) -> None:
        dive(levels - 1)

    with pytest.raises(ValueError, match="é") as caught:
        dive(400)
    record = describe(caught.value)

    assert "raise ValueError" in record.traceback
    assert len(record.traceback.encode()) <= 16 * 1024


def test_causes_and_groups_are_kept() -> None:
    try:
        try:
            raise KeyError("cause")
        except KeyError as cause:
            raise ExceptionGroup("many", [OSError("one"), ValueError("two")]) from cause
    except ExceptionGroup as group:
        record = describe(group)

    for word in ("KeyError: 'cause'", "OSError: one", "ValueError: two", "direct cause"):
        assert word in record.traceback


def test_nul_and_surrogates_are_replaced() -> None:
    record = describe(raised(RuntimeError("a\0b\ud800")))

    assert record.message == "a\ufffdb\ufffd"
    assert "\0" not in record.traceback
    assert ErrorRecord.from_json(record.to_json()) == record


def test_errors_of_the_product_bring_their_code() -> None:
    assert describe(LeaseLost("x")).code == "FR-401"
    assert describe(LeaseLost("x"), "own").code == "own"
