"""What a process of a storm is told when it starts, and the board on which clients see how much they may submit."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.proof.storm.outside import StormStore

PR_SET_PDEATHSIG = 1
HISTORY = "history"  # the folder, below that of the storm
INSIDE = "inside"


class Board:
    """Counters in memory that all processes share. Each is written by one process only, so no lock can be orphaned."""

    def __init__(self, counters: Any) -> None:
        self._counters = counters  # [allowed, taken by slot 0, taken by slot 1, …]

    def allow(self, count: int) -> None:
        """How many jobs may have been submitted by now."""
        self._counters[0] = count

    def take(self, slot: int, *, beyond: bool = False) -> bool:
        """Take one for a client; false when all that are allowed were taken. Two at once may take one too many."""
        if not beyond and self.taken() >= self._counters[0]:
            return False
        self._counters[1 + slot] += 1
        return True

    def taken(self) -> int:
        """How many were taken by all clients."""
        return sum(self._counters[1:])


@dataclass(frozen=True)
class Post:
    """The place of one process: which database, which files, and who it is."""

    name: str
    number: int
    slot: int
    url: str
    folder: Path
    seed: int
    bug: str
    mix: Mapping[str, int] | None  # what a client submits; None: everything
    board: Board
    spared: bool = False  # neither killed nor stopped, nor made to end itself
    clock_us: int = 0  # how far the clock of the day is off: SQLite has none but those of its processes

    @property
    def store(self) -> StormStore:
        """Where this process keeps large payloads."""
        return StormStore(self.folder, self.name)

    @contextmanager
    def inside(self, job_id: str) -> Iterator[None]:
        """A guarded transaction of this process is open: seen from outside by a file."""
        mark = self.folder / INSIDE / self.name / job_id
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
        try:
            yield
        finally:
            mark.unlink(missing_ok=True)

    def is_inside(self) -> bool:
        """Whether a guarded transaction of this process is open."""
        folder = self.folder / INSIDE / self.name
        return folder.is_dir() and any(folder.iterdir())


def take_up(post: Post) -> None:
    """End with whoever started us, and write what we say to a file of our own."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    file = os.open(post.folder / f"{post.name}.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)
