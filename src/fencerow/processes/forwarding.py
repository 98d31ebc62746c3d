"""The log of a child process goes to its worker's, with the levels that were set there."""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from fencerow.processes.wire import Line

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class Forwarding(logging.Handler):
    """Sends each record as one message. What a record carries beside its text travels if it is plain."""

    def __init__(self, send: Callable[[msgspec.Struct], None]) -> None:
        super().__init__()
        self._tell = send
        self._traces = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            trace = record.exc_text
            if trace is None and record.exc_info:
                trace = self._traces.formatException(record.exc_info)
            extra = {
                name: value
                for name, value in vars(record).items()
                if name not in _OWN and isinstance(value, str | int | float | bool | None)
            }
            self._tell(
                Line(
                    record.name,
                    record.levelno,
                    record.getMessage(),
                    record.created,
                    record.threadName or "",
                    trace,
                    extra,
                )
            )
        except Exception:
            self.handleError(record)
