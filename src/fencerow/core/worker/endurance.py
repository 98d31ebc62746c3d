"""How long a loop of the core goes on when its own process is short of something: descriptors, threads, memory.

The database's trouble is waited out for as long as it lasts: no other process would fare better. A shortage is
different. A process that leaks descriptors will not mend itself, and a fresh one works at once.
"""

from __future__ import annotations

import os
import time

from fencerow.core.db.trouble import SHORT, is_shortage
from fencerow.core.errors import OutOfResources
from fencerow.core.telemetry import clean

TOLD_MAX = 200  # characters of an error on the worker's row
TOLD_S = 600.0  # how long a shortage that is over stays there


class Endurance:
    """Waits out a shortage for `limit_s` seconds; whoever asks counts as failing from the first `met` on."""

    def __init__(self, name: str, limit_s: float) -> None:
        self._name = name
        self._limit_s = limit_s
        self._since: float | None = None
        self._last: tuple[str, float] | None = None  # the last shortage, and when it was met

    def recovered(self) -> None:
        """It went well: whatever was short is there again."""
        self._since = None

    def met(self, error: BaseException) -> OutOfResources | None:
        """Note a failure; returns why the process must end, if it has lasted too long and is the process's own."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
        if not (is_shortage(error) or is_out_of_descriptors()):
            return None
        self._last = clean(f"{self._name}: {type(error).__name__}: {error}")[:TOLD_MAX], now
        if now - self._since < self._limit_s:
            return None
        return OutOfResources(
            f"nothing could be done for {now - self._since:.0f} s: {type(error).__name__}: {error}",
            "this process has no descriptors, threads or memory left, and a fresh one does better",
            "let a supervisor start it again; raise its limits (ulimit -n), or find what keeps files and sockets open",
        )

    def shortage(self) -> str | None:
        """The last shortage that it met, while that is worth telling. From any thread."""
        last = self._last
        return last[0] if last is not None and time.monotonic() - last[1] < TOLD_S else None


def is_out_of_descriptors() -> bool:
    """Whether this process can open nothing any more; drivers report that as a server that cannot be reached."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno in SHORT
    return False
