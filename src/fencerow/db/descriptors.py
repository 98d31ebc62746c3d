"""How many file descriptors this process has open, and how many it may have: soon none may be left."""

from __future__ import annotations

import errno
import sys
import time
from pathlib import Path

OPEN_FILES = Path("/proc/self/fd")
COUNT_S = 2.0  # a process with thousands of descriptors is not counted each time that somebody asks


class DescriptorCount:
    """What is open, counted at most every `COUNT_S` seconds, by one thread at a time."""

    def __init__(self) -> None:
        self._last: tuple[int, int] | None = None
        self._due = 0.0  # monotonic seconds

    def look(self) -> tuple[int, int] | None:
        """How many are open, now or a moment ago, and the limit; None where they cannot be counted."""
        now = time.monotonic()
        if now >= self._due:
            self._last, self._due = counted(), now + COUNT_S
        return self._last


def counted() -> tuple[int, int] | None:
    """How many are open now, and the limit; None where the system does not tell or sets no limit."""
    if sys.platform != "linux":
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        return len(list(OPEN_FILES.iterdir())) - 1, limit  # one is that of the folder itself
    except OSError as error:
        # Where none is left to look with, that is the answer.
        return (limit, limit) if error.errno == errno.EMFILE else None
