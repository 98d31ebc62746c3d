"""The log of `worker` and `dev`: where it goes, from which level on, and what becomes of the application's own.

An application that has given the root logger a handler, when it was imported, has configured `logging` itself. Then its
handlers and levels stay, and only the fields of jobs are added. Else all goes to the standard error, from INFO on.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Iterator
from typing import TextIO

from fencerow.core.config import CoreConfig
from fencerow.logs import ConsoleFormatter, JsonFormatter, LogFields

OURS = "fencerow"


def quiet() -> None:
    """Until a log is set up there is none; without this Python would print warnings between our lines.

    Not by a handler of the root logger: `logging.basicConfig` of an application would find it, and do nothing.
    """
    logging.lastResort = logging.NullHandler()


def set_up(config: CoreConfig, level: str | None = None, log_format: str | None = None) -> None:
    """Let what the application and we log be written. `level` and `log_format` of the command line come first."""
    wanted = level or config.log_level
    root = logging.getLogger()
    if any(not isinstance(each, logging.NullHandler) for each in root.handlers):
        if wanted is not None:
            logging.getLogger(OURS).setLevel(wanted.upper())
    else:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_formatter(log_format or config.log_format, sys.stderr))
        root.addHandler(handler)
        if wanted is not None or root.level == logging.WARNING:  # which is how Python leaves it
            root.setLevel((wanted or "info").upper())
        logging.captureWarnings(True)
    for logger in _loggers():
        if logger.name.partition(".")[0] == OURS:
            logger.disabled = False  # `dictConfig` disables by default what was there before it
        for each in logger.handlers:
            each.addFilter(LogFields())


def flow() -> None:
    """Let what handlers print be seen at once, not when a buffer is full."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)


def _formatter(log_format: str, stream: TextIO) -> logging.Formatter:
    if log_format == "json":
        return JsonFormatter()
    dumb = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return ConsoleFormatter(coloured=stream.isatty() and not dumb)


def _loggers() -> Iterator[logging.Logger]:
    """The root and all others that exist."""
    yield logging.getLogger()
    for each in list(logging.root.manager.loggerDict.values()):
        if isinstance(each, logging.Logger):
            yield each
