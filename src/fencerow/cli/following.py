"""A bar for a job that somebody waits for: its own progress and note, while another thread waits for its end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fencerow.command.progress import CommandProgress, progress
from fencerow.core.client.handle import Handle
from fencerow.core.errors import FencerowError

LOOK_S = 1.0


@contextmanager
def following(handle: Handle[Any], *, json: bool) -> Iterator[None]:
    """Show how far the job is until the block ends; it reads the job each second. Nothing if no person would see it."""
    with progress("waiting", 100, json=json, percents=True) as bar:
        if bar.bar is None:
            yield
            return
        ended = threading.Event()
        thread = threading.Thread(
            target=_follow, args=(handle, bar, ended), name="fencerow-following", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def _follow(handle: Handle[Any], bar: CommandProgress, ended: threading.Event) -> None:
    while True:
        try:
            job = handle.refresh()
            bar.to(job.progress or 0, job.progress_note or job.state.value)
        except FencerowError:
            pass  # whoever waits for the end is told; the bar stays where it was
        if ended.wait(LOOK_S):
            return
