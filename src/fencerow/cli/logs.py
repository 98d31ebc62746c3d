"""The log of `worker` and `dev`: standard logging on the standard error, one event a line or one JSON object."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from fencerow.core.telemetry import clean

# Whoever logs inside an attempt passes these by `extra`.
FIELDS = ("job_id", "attempt", "job", "queue", "worker", "correlation_id")


def set_up(log_format: str, level: str) -> None:
    """Send all logs there, ours from `level` on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else ConsoleFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("fencerow").setLevel(level.upper())


class ConsoleFormatter(logging.Formatter):
    """For people. Whatever follows a first line is indented, so that no line of it can pass for an event."""

    def format(self, record: logging.LogRecord) -> str:
        moment = _moment(record).strftime("%H:%M:%S.%f")[:-3]
        fields = " ".join(f"{name}={value}" for name, value in _fields(record).items())
        first, *rest = record.getMessage().split("\n")
        line = f"{moment} {record.levelname:<8} {first}" + (f"  {fields}" if fields else "")
        following = [*rest, *_trace(self, record).splitlines()]
        return "\n".join([clean(line), *(f"    {clean(each)}" for each in following)])


class JsonFormatter(logging.Formatter):
    """For machines: ASCII, one object a line."""

    def format(self, record: logging.LogRecord) -> str:
        event: dict[str, object] = {
            "at": _moment(record).isoformat().replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        trace = _trace(self, record)
        if trace:
            event["exception"] = trace
        return json.dumps(event, ensure_ascii=True, default=str)


def _moment(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    found = {name: getattr(record, name, None) for name in FIELDS}
    return {name: value for name, value in found.items() if value is not None}


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    text = formatter.formatException(record.exc_info) if record.exc_info else ""
    return "\n".join(part for part in (text, record.stack_info or "") if part)
