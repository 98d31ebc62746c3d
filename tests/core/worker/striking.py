"""Strikes a thread at a chosen bytecode of a path, wherever the interpreter might let an exception land.

It lands only behind a call, at the beginning of a function and where a loop turns back; those are counted. The
exception is raised at that very instruction, as if it had been on its way until then.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from dis import opname
from types import FrameType
from typing import Any

from fencerow.core.db.strikes import Striker
from fencerow.core.threads import Threads
from fencerow.core.worker.attempt import AskedToStop

OURS = "/fencerow/"
LANDINGS = ("CALL", "RESUME", "JUMP_BACKWARD")
PRELUDE = ("COPY_FREE_VARS", "MAKE_CELL", "RETURN_GENERATOR", "RESUME")  # nothing lands in a half-made frame
LATE_S = 5.0
BLOCKED_S = 0.02  # a strike that waits for the striker's lock: it comes when that is let go


class Hand:
    """A thread of its own that strikes when it is told to: no thread strikes itself."""

    def __init__(self, striker: Striker) -> None:
        self._striker = striker
        self._told = False
        self._wanted = threading.Lock()
        self._done = threading.Lock()
        self._wanted.acquire()
        self._done.acquire()
        self._thread = threading.Thread(target=self._run, name="fencerow-test-hand", daemon=True)
        self._thread.start()

    def strike(self) -> None:
        self._told = True
        self._wanted.release()
        self._done.acquire(timeout=BLOCKED_S)

    def wait(self) -> None:
        """Where it lands at the latest, if it was told to strike: one that was swallowed comes again soon."""
        until = time.monotonic() + LATE_S
        while self._told and time.monotonic() < until:
            time.sleep(0.0001)

    def close(self) -> None:
        if not self._told:
            self._striker = Striker()  # nothing was struck, and nothing is now
            self._wanted.release()
        self._thread.join()

    def _run(self) -> None:
        with self._wanted:
            self._striker.strike(AskedToStop)
            self._done.release()


@dataclass
class Walk:
    """One run of a path, struck at the `at`-th landing; without one it only counts them."""

    hand: Hand | None
    at: frozenset[int]
    landings: int = 0
    ours: dict[object, int] = field(default_factory=dict[object, int])  # each place in Fencerow's own code
    where: str = ""
    _open: bool = False

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            self._step(frame)
        return self.trace

    def _step(self, frame: FrameType) -> None:
        name = opname[frame.f_code.co_code[frame.f_lasti]]
        landing = self._open and name not in PRELUDE
        self._open = name.startswith(LANDINGS)
        if not landing:
            return
        self.landings += 1
        caller = frame.f_back and (frame.f_back.f_code, frame.f_back.f_lasti)
        if OURS in frame.f_code.co_filename:
            self.ours.setdefault((frame.f_code, frame.f_lasti, caller), self.landings)
        if self.landings in self.at and self.hand is not None:
            self.at = frozenset()
            self.where = f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})"
            self.hand.strike()
            # What waits behind a shelter lands without us; to watch all until then costs most of the time.
            sys.settrace(None)


@dataclass
class Ended:
    """How a path ended that was struck."""

    where: str
    came_through: bool  # it did all that it does
    error: BaseException | None


async def count(path: Callable[[], object]) -> Walk:
    """Walk the path without a strike."""
    threads, walk = Threads("fencerow-test"), Walk(None, frozenset())
    await threads.submit(lambda: _walked(path, walk, []), Striker())
    threads.close()
    return walk


async def struck(path: Callable[[], object], landing: int) -> Ended:
    """Walk the path and strike at this landing."""
    threads, striker = Threads("fencerow-test"), Striker()
    hand, through = Hand(striker), list[bool]()
    walk = Walk(hand, frozenset({landing}))
    error: BaseException | None = None
    try:
        await threads.submit(lambda: _walked(path, walk, through), striker)
    except BaseException as raised:
        error = raised
    hand.close()
    threads.close()
    return Ended(walk.where, bool(through), error)


def _walked(path: Callable[[], object], walk: Walk, through: list[bool]) -> None:
    sys.settrace(walk.trace)
    try:
        path()
        through.append(True)
    finally:
        sys.settrace(None)
    if walk.hand is not None:
        walk.hand.wait()  # what is on its way lands here at the latest
