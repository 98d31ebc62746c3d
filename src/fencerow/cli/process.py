"""What the command needs of its process, whoever started it: streams that are there, and an ear for SIGTERM."""

from __future__ import annotations

import io
import os
import signal
import sys
from pathlib import Path
from types import FrameType

FIRST = 1  # the number of a container's first process
TERMINATED = 128 + signal.SIGTERM  # the exit code of one that SIGTERM has ended
STANDARD = (0, 1, 2)


def prepare_process() -> None:
    """To be called first of all, in the main thread."""
    _fill_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # What a terminal has no letter for is escaped; it must not end a command.
            stream.reconfigure(errors="backslashreplace")
    if os.getpid() == FIRST:
        # The kernel gives it no signal that it has no handler for. Whoever holds jobs sets one of its own.
        signal.signal(signal.SIGTERM, _end)


def _fill_streams() -> None:
    """A service manager may close them. Then they are None, and the next file or socket would get their number."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) in STANDARD:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 (as long as the process)


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(
        TERMINATED
    )  # as any other process ends by it; an import would take SystemExit for an error of its own
