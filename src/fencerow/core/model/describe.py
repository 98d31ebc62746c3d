"""What is kept of an error: its type, message, traceback and a code, small enough for a row."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from fencerow.core.errors import FencerowError
from fencerow.core.model.frames import trim
from fencerow.db.errors.base import line_of
from fencerow.db.text import shortened, storable

MESSAGE_LENGTH_MAX = 2_000
TRACEBACK_BYTES_MAX = 16 * 1024
FRAMES_MAX = 60


class FailureCode(StrEnum):
    """Why an attempt or job failed, for programs. Errors of Fencerow bring their own FR code instead."""

    ERROR = "error"
    PERMANENT = "permanent_error"
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    SNOOZES_EXHAUSTED = "snoozes_exhausted"
    CRASHES_EXHAUSTED = "crashes_exhausted"
    CHOSEN = "failed_by_handler"


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """One error as it is kept with an attempt."""

    type: str
    message: str
    traceback: str
    code: str

    def to_json(self) -> str:
        """The record as a JSON object."""
        return msgspec.json.encode(self).decode()

    @staticmethod
    def from_json(text: str | bytes) -> ErrorRecord:
        """The record that `to_json` wrote.

        Raises:
            ValueError: the text is no such record.
        """
        return msgspec.json.decode(text, type=ErrorRecord)


def describe(error: BaseException, code: str = "") -> ErrorRecord:
    """Describe any error, also one whose own methods fail.

    The traceback keeps the innermost frames and the chain of causes, without the frames of ours above the handler's.
    It never holds local variables.
    """
    return ErrorRecord(
        type=_type_name(error),
        message=message_of(error),
        traceback=_traceback(error),
        code=code or (error.code if isinstance(error, FencerowError) else FailureCode.ERROR.value),
    )


def message_of(error: BaseException) -> str:
    """What the error says, storable and at most 2,000 characters long."""
    try:
        text = line_of(error)
    except Exception as broken:
        return f"<no message: str() of this error raised {type(broken).__name__}>"
    return shortened(storable(text), MESSAGE_LENGTH_MAX)


def _type_name(error: BaseException) -> str:
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return shortened(storable(name), 200)


def _traceback(error: BaseException) -> str:
    try:
        # Each line is cut first: one huge message must not push the frames out.
        text = "".join(_lines(error))
    except Exception as broken:
        return f"<no traceback: formatting it raised {type(broken).__name__}>"
    raw = storable(text).encode()
    if len(raw) <= TRACEBACK_BYTES_MAX:
        return raw.decode()
    marker = "...\n"
    return marker + raw[len(marker) - TRACEBACK_BYTES_MAX :].decode(errors="ignore")


def _lines(error: BaseException) -> Iterator[str]:
    found = traceback.TracebackException(
        type(error), error, error.__traceback__, limit=-FRAMES_MAX, capture_locals=False, compact=True
    )
    trim(found, error)
    for line in found.format():
        yield line if len(line) <= MESSAGE_LENGTH_MAX else line[:MESSAGE_LENGTH_MAX] + "...\n"
