"""How many file descriptors this process has open, counted cheaply: before none is left, an operator can be told."""

from __future__ import annotations

import errno
import sys
import time
from pathlib import Path

from fencerow.core.model.wanted import Descriptors

FOLDER = Path("/proc/self/fd")
LOOK_S = 2.0  # a process with thousands of them is not counted at each renewal that somebody hurried


class DescriptorCount:
    """Counts at most every `LOOK_S` seconds. Used by one thread at a time."""

    def __init__(self) -> None:
        self._last: Descriptors | None = None
        self._due = 0.0  # monotonic seconds

    def look(self) -> Descriptors | None:
        """What is open, now or a moment ago; None where it cannot be counted."""
        now = time.monotonic()
        if now >= self._due:
            self._last, self._due = counted(), now + LOOK_S
        return self._last


def counted() -> Descriptors | None:
    """What is open now, and the limit; None where the system does not tell or sets no limit."""
    if sys.platform != "linux":
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        return Descriptors(len(list(FOLDER.iterdir())) - 1, limit)  # one is that of the folder itself
    except OSError as error:
        # Where none is left to look with, that is the answer.
        return Descriptors(limit, limit) if error.errno == errno.EMFILE else None
