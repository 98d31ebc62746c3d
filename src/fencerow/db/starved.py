"""How long a thread waited for a processor, as Linux counts it: a loop that does not get one is blocked by no code."""

from __future__ import annotations

import os

SHARE = 0.5  # of the time in which the loop did not answer
LINE_MAX = 64  # bytes: three numbers


class ProcessorWait:
    """What one thread of this process has waited for a processor.

    It is asked twice a second for as long as a worker lives, and the file is opened once: opening costs five times as
    much as reading. Used in one thread.
    """

    def __init__(self, thread_id: int) -> None:
        self._path = f"/proc/self/task/{thread_id}/schedstat"
        self._fd: int | None = None

    def seconds(self) -> float | None:
        """How long the thread could run and did not, since it began; None: nobody counts that."""
        try:
            if self._fd is None:
                self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            return int(os.pread(self._fd, LINE_MAX, 0).split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return None

    def close(self) -> None:
        """Close the file; who asks again opens it again."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


def is_starved(before_s: float | None, after_s: float | None, silent_s: float) -> bool:
    """Whether a thread that was silent for so long waited for a processor for most of it."""
    return before_s is not None and after_s is not None and after_s - before_s >= SHARE * silent_s
