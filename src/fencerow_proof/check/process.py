"""A process of a check as the director sees it: what it is about to do, what it is doing, and how it ended."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from fencerow_proof.check.kinds import Action
from fencerow_proof.check.wire import After, Before, Busy, Channel, Ended, Fail, Go, Prepared, Refused, Seen


class Process:
    """One run. It waits before each action (`pending`) or while the SQLite file is locked (`busy`)."""

    def __init__(self, channel: Channel, pid: int) -> None:
        self.pid = pid
        self.pending: Action | None = None
        self.busy = False
        self.doing: dict[int, Action] = {}
        self.trace: list[Action] = []  # what was let go, in order
        self.failed: dict[int, str] = {}  # actions that failed by themselves, by number
        self.seen: list[Action] = []
        self.backends: set[int] = set()
        self.ended: Ended | None = None
        self.said: Prepared | Refused | None = None
        self.is_gone = False
        self.heard_at = time.monotonic()
        self._channel = channel

    @property
    def is_over(self) -> bool:
        return self.is_gone or self.ended is not None or self.said is not None

    @property
    def waits(self) -> bool:
        """Whether it does nothing before it is told."""
        return self.is_over or self.busy or self.pending is not None

    @property
    def is_at_work(self) -> bool:
        """Whether one of its threads computes, waits for a processor, or for a disk. Only Linux tells."""
        try:
            threads = [path.read_text() for path in Path(f"/proc/{self.pid}/task").glob("*/stat")]
        except OSError:
            return False  # it has ended meanwhile
        return any(text.rpartition(")")[2].split()[0] in "RD" for text in threads)

    def fileno(self) -> int:
        return self._channel.fileno()

    def go(self) -> None:
        """Let it do its next action, or try again what was busy."""
        self._answer(Go())

    def fail(self) -> None:
        """Let its next action fail, or let it give up the locked file."""
        self._answer(Fail())

    def kill(self) -> None:
        """End it as kill -9 does, and return when it is gone."""
        if not self.is_gone:
            try:
                os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            while not self.is_gone:
                self.hear()
        self._channel.close()

    def hear(self) -> None:
        """Take one message; its end is one too."""
        message = self._channel.heard_from_process()
        self.heard_at = time.monotonic()
        match message:
            case None:
                self.is_gone = True
                self.pending, self.busy = None, False
            case Before(action):
                self.pending = action
                if action.backend is not None:
                    self.backends.add(action.backend)
            case After(number, error):
                self.doing.pop(number, None)
                if error is not None:
                    self.failed[number] = error
            case Busy():
                self.busy = True
            case Seen(action):
                self.seen.append(action)
            case Ended():
                self.ended = message
            case Prepared() | Refused():
                self.said = message
            case _:
                raise AssertionError(f"{type(message).__name__} is none of its messages")

    def _answer(self, word: Go | Fail) -> None:
        if self.pending is not None and not self.busy:
            self.doing[self.pending.number] = self.pending
            self.trace.append(self.pending)
            self.pending = None
        self.busy = False
        try:
            self._channel.send(word)
        except OSError:
            pass  # it is gone; hearing it tells so


def hear_any(processes: Sequence[Process], within_s: float) -> bool:
    """Take what there is to be heard; false when nobody said anything within that time."""
    listening = [each for each in processes if not each.is_gone]
    if not listening:
        return False
    ready, _, _ = select.select(listening, [], [], within_s)
    for process in ready:
        process.hear()
    return bool(ready)
