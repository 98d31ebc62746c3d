"""The log of a child process goes to its worker's, with the levels that were set there.

All of it: what an application does with its lines, its worker does, which has imported the same application. If a child
wrote to the same file beside it, they would write over one another.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import msgspec

from fencerow.logs import LogFields
from fencerow.processes.wire import WireLine

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class Forwarding(logging.Handler):
    """Sends each record as one message. What a record carries beside its text travels if it is plain."""

    def __init__(self, send: Callable[[msgspec.Struct], None]) -> None:
        super().__init__()
        self.addFilter(LogFields())
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
                WireLine(
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


def forward_all(forwarding: Forwarding, levels: Mapping[str, int]) -> None:
    """Let this alone handle what any logger says, whatever the application has configured when it was imported."""
    root = logging.getLogger()
    for each in list(root.manager.loggerDict.values()):
        if isinstance(each, logging.Logger):
            each.handlers.clear()
            each.propagate, each.disabled = True, False
    root.handlers[:] = [forwarding]
    for name, level in levels.items():
        logging.getLogger(name or None).setLevel(level)
