"""A process without descriptors, or without room for another thread, for as long as a block."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOM = 16  # above what is open: the limit is lowered so that few files fill it


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Nothing can be opened in this process inside the block. Print nothing, assert nothing in it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    top = max(int(each.name) for each in Path("/dev/fd").iterdir())
    held: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (top + ROOM, hard))
    try:
        while True:
            try:
                held.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                break
        yield
    finally:
        for each in held:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def no_thread(name: str) -> Iterator[list[str]]:
    """The system refuses threads whose names begin so; the list tells which were asked for."""
    refused: list[str] = []
    start = threading.Thread.start

    def refusing(thread: threading.Thread) -> None:
        if thread.name.startswith(name):
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")
        start(thread)

    threading.Thread.start = refusing  # type: ignore[method-assign, assignment]
    try:
        yield refused
    finally:
        threading.Thread.start = start  # type: ignore[method-assign]
