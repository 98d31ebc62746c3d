"""What this process keeps in memory."""

from __future__ import annotations

import gc
import os
import threading

STATM = "/proc/self/statm"


def resident_bytes() -> int | None:
    """What lies in memory now; None where the system does not tell it cheaply."""
    try:
        with open(STATM, "rb") as file:  # noqa: PTH123 - quicker, and it is no path of anybody's
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


class FrozenMemory:
    """Whether what lay in memory when the first worker of this process began is left out of garbage collections.

    It is there for as long as the worker, and to look through all of it keeps every thread from work for tens of
    milliseconds: a start now and then came so much later. Cycles that become garbage among it are kept until the last
    worker ends. An application that freezes for itself is left alone, before a worker or while one runs: then what both
    have frozen stays so. From any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._workers = 0
        self._frozen: int | None = None  # how many objects there were behind our own freeze

    def begin(self) -> None:
        """One more worker is at work."""
        with self._lock:
            self._workers += 1
            if self._workers == 1 and gc.get_freeze_count() == 0:
                gc.freeze()
                self._frozen = gc.get_freeze_count()

    def end(self) -> None:
        """One that began has ended."""
        with self._lock:
            self._workers -= 1
            if self._workers == 0 and self._frozen is not None:
                if gc.get_freeze_count() <= self._frozen:  # more: the application has frozen since
                    gc.unfreeze()
                self._frozen = None


FROZEN_MEMORY = FrozenMemory()
