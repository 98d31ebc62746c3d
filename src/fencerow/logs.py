"""What the worker makes of log records, for applications that configure `logging` themselves.

The guide: docs/guide/logs.md.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Collection
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from fencerow.core.log_fields import current
from fencerow.db.text import clean, said_of

__all__ = ["ConsoleFormatter", "JsonFormatter", "LogFields"]

# Each line of the log may have these; a filter gives all of them to every record, so that any format may name them.
FIELDS = ("job_id", "job", "attempt", "queue", "correlation_id")
EXTRA = "extra_"  # before the name of a field that a handler passes and that is taken
# What a console line shows behind its text, in this order. Other fields are for machines.
SHOWN = ("job", "job_id", "attempt", "jobs", "group", "topic", "event_id", "delivery", "correlation_id")
OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}
TAKEN = frozenset(("at", "level", "logger", "message", "traceback"))  # by the fields of each line
VALUE_LENGTH_MAX = 1_000
DEPTH_MAX = 10
LONG_MAX = 2**64  # beyond it readers of JSON take a number for another one
PARTS_MAX = 1_000  # of all lists and dicts of one value together
# A password in a URL or a connection string. Narrower than `masked`, which may take the rest of a sentence with it.
SECRET = re.compile(
    r"(://[^\s:@/?#]*):[^\s/]+@|(\bpassword\s*=\s*)(?:'(?:[^'\\]|\\.)*'|[^\s&'\"]+)", re.IGNORECASE
)
encoded = json.JSONEncoder(ensure_ascii=True, allow_nan=False).encode  # made once: that is half its price
DIM, END = "\x1b[2m", "\x1b[0m"
COLOURS = {logging.WARNING: "\x1b[33m", logging.ERROR: "\x1b[31m", logging.CRITICAL: "\x1b[31m"}


class LogFields(logging.Filter):
    """Gives each record the fields of the job in whose handler it was made: `job_id`, `job`, `attempt`, `queue`, and
    the `correlation_id` of the job's headers.

        handler.addFilter(LogFields())
        handler.setFormatter(logging.Formatter("%(levelname)s %(message)s job=%(job)s %(job_id)s"))

    Outside of a job they are None. In a batch handler there are `job`, `jobs` (how many) and `job_ids` (the first ten);
    in the handler of a consumer `group`, `topic`, `event_id` and `delivery`. A field of such a name that a handler
    passes as `extra` is kept as `extra_job_id` and the like: a line says in which job it was written. Outside of
    handlers what a record has already is left as it is. No record is dropped. `fencerow worker` and `fencerow dev`
    put it on all handlers by themselves. Elsewhere put it on a handler, not on a logger: filters of loggers do not see
    the lines of the loggers below.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields; always true."""
        known = vars(record)
        if record.name.partition(".")[0] != "fencerow":
            for name, value in current().items():
                if known.setdefault(name, value) != value:
                    known[f"{EXTRA}{name}"], known[name] = known[name], value
        elif "job_id" not in known:  # else it says itself what it is about, another job perhaps
            for name, value in current().items():
                known.setdefault(name, value)
        for name in FIELDS:
            known.setdefault(name, None)
        return True


class ConsoleFormatter(logging.Formatter):
    """For people: time in UTC, level, text, then the fields of the job if the text does not name it.

    Whatever follows a first line is indented, so that no line of it can pass for an event. Control characters are
    escaped, and passwords in URLs are masked.
    """

    def __init__(self, *, coloured: bool = False) -> None:
        super().__init__()
        self._coloured = coloured

    def format(self, record: logging.LogRecord) -> str:
        """One line, and indented ones below it."""
        moment = _moment(record).strftime("%H:%M:%S.%f")[:-3]
        first, *rest = safe(record).split("\n")
        # Our own lines say by themselves what they are about.
        source = "" if record.name.partition(".")[0] == "fencerow" else f"{record.name}: "
        number = getattr(record, "process_number", None)  # of several that write one log
        source = source if number is None else f"[{number}] {source}"
        fields = " ".join(f"{name}={_text(value)}" for name, value in _shown(record, first).items())
        following = [clean(each) for each in (*rest, *_trace(self, record).splitlines())]
        level = f"{record.levelname:<8}"
        text = clean(source + first)
        fields = clean(fields)
        if self._coloured:
            moment, fields = f"{DIM}{moment}{END}", f"{DIM}{fields}{END}" if fields else ""
            colour = COLOURS.get(record.levelno)
            level = f"{colour}{level}{END}" if colour else level
        line = f"{moment} {level} {text}" + (f"  {fields}" if fields else "")
        return "\n".join([line, *(f"    {each}" for each in following)])


class JsonFormatter(logging.Formatter):
    """For machines: ASCII, one object a line. What a record carries beside its text is a field of its own.

    A traceback is the field `traceback`. Passwords in URLs are masked. What is passed as `extra` under a name that is
    taken, `at` for one, is the field `extra_at`. Of a value that is deep or has many parts the rest is left out.
    """

    def format(self, record: logging.LogRecord) -> str:
        """One line with one JSON object."""
        event: dict[str, object] = {
            "at": _moment(record).isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": safe(record),
        }
        for name, value in vars(record).items():
            if name not in OWN and value is not None:
                event[EXTRA + name if name in TAKEN else name] = plain(value)
        trace = _trace(self, record)
        if trace:
            event["traceback"] = trace
        return encoded(event)


def safe(record: logging.LogRecord) -> str:
    """The text of a record, also of one whose arguments do not fit, without passwords."""
    try:
        text = record.getMessage()
    except Exception as error:
        text = f"{record.msg} (its arguments do not fit: {said_of(error)})"
    return without_secrets(text)


def without_secrets(text: str) -> str:
    """The text with the passwords of its URLs and connection strings masked."""
    if "://" in text or "=" in text:
        return SECRET.sub(
            lambda found: f"{found[1]}:***@" if found[1] is not None else f"{found[2]}***", text
        )
    return text


def plain(value: object) -> object:
    """A value as JSON can have it; what is no plain value becomes text. It raises nothing, whatever it is given: an
    error here would be raised in the code that logs.
    """
    return _plain(value, DEPTH_MAX, [PARTS_MAX])


def _plain(value: object, depth: int, room: list[int]) -> object:
    """`depth`: how far down it may go; `room[0]`: how many more parts may follow, here and in what stands beside it."""
    match value:
        case bool() | None:
            return value
        case int():
            return value if -LONG_MAX < value < LONG_MAX else _text(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return without_secrets(value)
        case list() | tuple() | dict() if depth == 0 or room[0] <= 0:
            return "…"
        case list() | tuple():
            return [_plain(each, depth - 1, room) for each in _first(value, room)]
        case dict():
            found: dict[Any, Any] = value
            return {_text(name): _plain(each, depth - 1, room) for name, each in _first(found.items(), room)}
        case _:
            return _text(value)


def _first(parts: Collection[Any], room: list[int]) -> list[Any]:
    taken = list(islice(parts, min(100, room[0])))
    room[0] -= len(taken)
    return taken


def _text(value: object) -> str:
    try:
        return without_secrets(str(value))[:VALUE_LENGTH_MAX]
    except Exception as error:
        return f"<{type(value).__name__}, and str() of it raised {type(error).__name__}>"


def _moment(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _shown(record: logging.LogRecord, text: str) -> dict[str, object]:
    """The fields for a person; none where the text names the job itself."""
    job_id = getattr(record, "job_id", None)
    if job_id is not None and _text(job_id) in text:
        return {}
    found = {name: getattr(record, name, None) for name in SHOWN}
    return {name: value for name, value in found.items() if value is not None}


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    text = record.exc_text or (formatter.formatException(record.exc_info) if record.exc_info else "")
    return without_secrets("\n".join(part for part in (text, record.stack_info or "") if part))
