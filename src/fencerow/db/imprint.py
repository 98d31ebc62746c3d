"""Whether a SQLite file may have changed, by what its file system notes of each write: two calls, and no lock."""

from __future__ import annotations

import os
import time
from pathlib import Path

# File systems note times in steps, the coarsest of two seconds: what was written just now may be written once more
# without another time.
SETTLED_S = 3.0
# For so long an imprint is believed. With `wal` a commit becomes visible through shared memory, after its write: on a
# disk that is slower than the time to settle a look may come between the two.
BELIEVED_S = 5.0
LEAP_US = 250_000  # by which the clock may drift from this host's steady one between two imprints


def imprint(path: Path, now_us: int) -> object | None:
    """Of the file and its log, and of the clock that says `now_us`; None where a write is so young that another may
    leave no trace."""
    noted = _noted(str(path)), _noted(f"{path}-wal")
    if noted[0] is None or any(
        each is not None and time.time() - each[2] / 1e9 < SETTLED_S for each in noted
    ):
        return None
    return noted, (now_us - time.monotonic_ns() // 1000) // LEAP_US


def _noted(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 (a Path for each costs as much as the call)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


class LastImprint:
    """The imprint that was there before somebody looked last."""

    def __init__(self) -> None:
        self._imprint: object | None = None
        self._until = 0.0

    def note(self, imprint: object | None, looked_at: float) -> None:
        """A look that began then (monotonic seconds), after this imprint was read, has its answer."""
        self._imprint, self._until = imprint, looked_at + BELIEVED_S

    def is_still(self, imprint: object | None) -> bool:
        """Whether another look would find what that one found."""
        return imprint is not None and imprint == self._imprint and time.monotonic() < self._until
