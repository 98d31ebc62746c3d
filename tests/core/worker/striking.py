"""Strikes a thread at a chosen bytecode of a path, wherever the interpreter might let an exception land.

It lands only behind a call, at the beginning of a function and where a loop turns back; those are counted. The
exception is raised at that very instruction, as if it had been on its way until then.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from dis import opname
from types import CodeType, FrameType
from typing import Any

from fencerow.core.worker.attempt import AskedToStop
from fencerow.db.strikes import Striker
from fencerow.db.threads import Threads
from tests.kit.pace import PATIENCE_S

OURS = "/fencerow/"
LANDINGS = ("CALL", "RESUME", "JUMP_BACKWARD")
PRELUDE = ("COPY_FREE_VARS", "MAKE_CELL", "RETURN_GENERATOR", "RESUME")  # nothing lands in a half-made frame


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
        """Have it struck when this returns; or as soon as this thread lets go of the striker's lock, if it has that."""
        self._told = True
        self._wanted.release()
        if self._striker._lock._is_owned():  # type: ignore[attr-defined]
            while not self._is_at_the_lock():
                time.sleep(0.0001)
        else:
            assert self._done.acquire(timeout=PATIENCE_S), "nobody strikes"

    def wait(self) -> None:
        """Where it lands at the latest, if it was told to strike: one that was swallowed comes again soon."""
        until = time.monotonic() + PATIENCE_S
        while self._told and time.monotonic() < until:
            time.sleep(0.0001)

    def close(self) -> None:
        if not self._told:
            self._striker = Striker()  # nothing was struck, and nothing is now
            self._wanted.release()
        self._thread.join()

    def _is_at_the_lock(self) -> bool:
        frame = sys._current_frames().get(self._thread.ident or 0)
        return frame is not None and frame.f_code is Striker.strike.__code__

    def _run(self) -> None:
        with self._wanted:
            self._striker.strike(AskedToStop)
            self._done.release()


@dataclass
class Walk:
    """One run of a path, struck at the `at`-th landing; without one it only counts them.

    With `below`, only those count that are in this function or below it.
    """

    hand: Hand | None
    at: frozenset[int]
    below: CodeType | None = None
    landings: int = 0
    ours: dict[object, int] = field(default_factory=dict[object, int])  # each place in Fencerow's own code
    each: dict[object, int] = field(
        default_factory=dict[object, int]
    )  # each place, by all the calls that lead to it
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
        way = _way(frame, self.below)
        if self.below is not None and not way:
            return
        self.landings += 1
        self.each.setdefault(way, self.landings)
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


async def count(path: Callable[[], object], below: CodeType | None = None) -> Walk:
    """Walk the path without a strike."""
    threads, walk = Threads("fencerow-test"), Walk(None, frozenset(), below)
    with uncollected():
        await threads.submit(lambda: _walked(path, walk, []), Striker())
    threads.close()
    return walk


async def struck(path: Callable[[], object], landing: int, below: CodeType | None = None) -> Ended:
    """Walk the path and strike at this landing."""
    threads, striker = Threads("fencerow-test"), Striker()
    hand, through = Hand(striker), list[bool]()
    walk = Walk(hand, frozenset({landing}), below)
    error: BaseException | None = None
    try:
        with uncollected():
            await threads.submit(lambda: _walked(path, walk, through), striker)
    except BaseException as raised:
        error = raised
    hand.close()
    threads.close()
    return Ended(walk.where, bool(through), error)


@contextmanager
def uncollected() -> Iterator[None]:
    """Memory is collected at whichever landing, and calls back there: at another one in each run."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _way(frame: FrameType, below: CodeType | None) -> tuple[object, ...]:
    """The calls that lead to this place from the function `below`, itself included; nothing if it is not below."""
    way: list[object] = []
    at: FrameType | None = frame
    while at is not None and below is not None:
        way.append((at.f_code, at.f_lasti))
        if at.f_code is below:
            return tuple(way)
        at = at.f_back
    return ()


def _walked(path: Callable[[], object], walk: Walk, through: list[bool]) -> None:
    sys.settrace(walk.trace)
    try:
        path()
        through.append(True)
    finally:
        sys.settrace(None)
    if walk.hand is not None:
        walk.hand.wait()  # what is on its way lands here at the latest
