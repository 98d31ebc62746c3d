"""An interrupt of the program (Ctrl-C) between any two lines of a submit group, in an event loop that then goes on."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import fencerow.core.client.submit_group as submit_group
from fencerow.core.client.submit_group import SubmitGroup
from fencerow.core.model.submission import Submission
from tests.kit.jobs import new_job
from tests.kit.pace import PATIENCE_S

FILE = submit_group.__file__
LINES = Path(FILE).read_text().splitlines()
Over = Callable[[object, BaseException | None], None]


class Interrupts:
    """Raises once, before the line of the group that is so many lines ahead."""

    def __init__(self, ahead: int) -> None:
        self.ahead = ahead
        self.at: int | None = None

    def enter(self, frame: FrameType, event: str, _: object) -> Any:
        return self.line if frame.f_code.co_filename == FILE else None

    def line(self, frame: FrameType, event: str, _: object) -> Any:
        # `try` does nothing, so none comes before what stands in it.
        if event == "line" and self.at is None and LINES[frame.f_lineno - 1].strip() != "try:":
            self.ahead -= 1
            if self.ahead < 0:
                self.at = frame.f_lineno
                raise KeyboardInterrupt
        return self.line


class Play:
    """Three at once, of which one is bad, then one alone, then two."""

    def __init__(self, begins: bool) -> None:
        self.loop = asyncio.new_event_loop()
        self.bad = Submission(new_job())
        self.accepted: list[asyncio.Future[None]] = []
        self.group = SubmitGroup(self.send, self.loop, self.begin if begins else None)

    async def send(self, batch: Sequence[Submission]) -> None:
        await asyncio.sleep(0)
        if self.bad in batch:
            raise ValueError

    def begin(self, batch: Sequence[Submission], over: Over) -> bool:
        self.loop.call_soon(over, None, ValueError() if self.bad in batch else None)
        return True

    def submit(self, submission: Submission) -> None:
        self.accepted.append(self.group.submit(submission, self.loop.create_future()))

    async def submits(self) -> None:
        for given in [self.bad, Submission(new_job()), Submission(new_job())], [1], [1, 2]:
            for each in given:
                self.submit(each if isinstance(each, Submission) else Submission(new_job()))
            await self.group.drain()

    async def told(self) -> None:
        self.submit(Submission(new_job()))
        await asyncio.wait_for(asyncio.gather(*self.accepted, return_exceptions=True), PATIENCE_S)
        await asyncio.wait_for(self.group.drain(), PATIENCE_S)


@pytest.mark.parametrize("begins", [False, True])
def test_an_interrupt_between_any_two_lines_leaves_nobody_untold_and_no_group_busy(begins: bool) -> None:
    for ahead in range(10_000):
        play, interrupts = Play(begins), Interrupts(ahead)
        before = sys.gettrace()
        try:
            sys.settrace(interrupts.enter)
            with suppress(KeyboardInterrupt):
                play.loop.run_until_complete(play.submits())
        finally:
            sys.settrace(before)
        for _ in range(3):  # it may be raised in a later turn, and what ends the first run may end the next
            with suppress(KeyboardInterrupt, RuntimeError):
                play.loop.run_until_complete(play.told())
                break
        else:
            pytest.fail(f"interrupted before line {interrupts.at}, it is never over")
        play.loop.close()
        if interrupts.at is None:
            assert ahead > 50, "all lines had their turn"
            return
