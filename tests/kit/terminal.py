"""A command in a real terminal: what it shows, what keys do, and how it leaves the terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import fencerow
from tests.kit.pace import PATIENCE_S
from tests.kit.stopping import signals_heeded

OF_THE_MACHINE = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")


class Terminal:
    """A process with a terminal of its own; `shown` is all that it has written there."""

    def __init__(self, *words: str, size: tuple[int, int] = (80, 24)) -> None:
        self.ours, theirs = pty.openpty()
        self.resize(*size)
        self.found = termios.tcgetattr(theirs)
        path = str(Path(fencerow.__file__).parents[1])
        # A terminal of its own: this one's size, colours and letters are no part of a test.
        environ = {name: value for name, value in os.environ.items() if name not in OF_THE_MACHINE}
        with signals_heeded():
            self.process = subprocess.Popen(
                [sys.executable, "-m", "fencerow.cli.main", *words],
                env={**environ, "PYTHONPATH": path, "TERM": "xterm", "PYTHONUTF8": "1"},
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
            )
        self.theirs = theirs
        self.shown = ""

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def until(self, text: str) -> None:
        """Read until this was shown, from now on."""
        self.shown, deadline = "", time.monotonic() + PATIENCE_S
        while text not in self.shown:
            assert time.monotonic() < deadline, f"{text!r} was not shown: {self.shown[-2000:]!r}"
            self._read(0.2)

    def ended(self) -> int:
        """The exit code; all that was written is read."""
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.shown[-2000:]
            self._read(0.05)
        while self._read(0.0):
            pass
        return self.process.returncode

    def type(self, keys: str) -> None:
        os.write(self.ours, keys.encode())

    def is_as_found(self) -> bool:
        return termios.tcgetattr(self.theirs) == self.found

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)

    def _read(self, seconds: float) -> bool:
        if not select.select([self.ours], [], [], seconds)[0]:
            return False
        self.shown += os.read(self.ours, 65536).decode(errors="replace")
        return True


@contextmanager
def terminal(*words: str, size: tuple[int, int] = (80, 24)) -> Iterator[Terminal]:
    made = Terminal(*words, size=size)
    try:
        yield made
    finally:
        made.close()
