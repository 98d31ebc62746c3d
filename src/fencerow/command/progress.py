"""Progress bars for people: on the standard error, on a terminal only, and never beside --json."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, TextIO

import click

from fencerow.db.text import clean

NOTE_WIDTH_MIN = 10
AROUND = 60  # columns that the bar, the percents and the time take
SHOW_CURSOR = "\x1b[?25h"


@dataclass(frozen=True, slots=True)
class CommandProgress:
    """How far a command is: so many of the whole, and a word about what it does just now. From any thread."""

    bar: Any  # click's; None where nobody looks
    lock: threading.Lock = field(default_factory=threading.Lock)

    def to(self, position: float, note: str | None = None) -> None:
        """Show that so much of the whole is done."""
        if self.bar is None:
            return
        with self.lock:
            self.bar.current_item = note
            self.bar.update(position - self.bar.pos)
            self.bar.render_progress()


def shows(*, json: bool) -> bool:
    """Whether a person sees a bar: the standard error is a terminal that moves its cursor, and nothing forbids it.

    `NO_COLOR` forbids it too: who sets it wants plain lines.
    """
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not json and not plain and sys.stderr.isatty()


@contextmanager
def progress(what: str, whole: float, *, json: bool, percents: bool = False) -> Iterator[CommandProgress]:
    """A bar until the block ends. `percents`: the whole is no number of things, so only percents are shown."""
    if not shows(json=json) or whole <= 0:
        yield CommandProgress(None)
        return
    with (
        _cursor_kept(sys.stderr),
        click.progressbar(
            length=int(whole),
            label=clean(what),
            file=sys.stderr,
            show_pos=not percents,
            show_percent=percents,
            item_show_func=_shortened,
            width=20,
        ) as bar,
    ):
        yield CommandProgress(bar)


@contextmanager
def _cursor_kept(stream: TextIO) -> Iterator[None]:
    """SIGTERM ends the process as ever, but the cursor, which a bar hides, is visible again."""
    is_ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    if not is_ours:
        yield
        return

    def end(number: int, _frame: FrameType | None) -> None:
        # Not by way of the stream: the signal may have come in the middle of a write to it.
        os.write(stream.fileno(), f"{SHOW_CURSOR}\n".encode())
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _shortened(note: str | None) -> str | None:
    """A note beside the bar that keeps to its line; whatever a handler wrote, it moves no cursor."""
    if not note:
        return None
    room = max(NOTE_WIDTH_MIN, shutil.get_terminal_size().columns - AROUND)
    text = clean(note)
    return text if len(text) <= room else text[: room - 1] + "…"
