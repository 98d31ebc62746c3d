"""Who watches how jobs stand and what they log over HTTP.

A look is one statement for each 500 jobs, and one for each 20 streams that have new lines to read. A stream holds the
newest look and one page of lines; a slow reader's lines wait in the database.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import takewhile

from fencerow.core.model.state import State
from fencerow.db.engine import Engine
from fencerow.operators.watching import KeptLine, WatchedJob, lines_after, watched
from fencerow.web.gateway.watching import Watch, Watching, WatchingByApp, in_parts, tell_standing

READERS_MAX = 20
LINES_MAX = 50
# Two lines that an attempt writes at once may become visible in the other order. So the lines of a running attempt are
# told when they are so old: the place of the last one told is then a place below which nothing comes any more.
SETTLED_US = 500_000


class JobWatch(Watch[WatchedJob]):
    """What one stream is told of a job: the newest look, and lines that it has not taken yet."""

    def __init__(self, job_id: str, position: int) -> None:
        super().__init__(job_id)
        self.position = position  # the last line that was handed over
        self._lines: Sequence[KeptLine] = ()

    @property
    def wants_lines(self) -> bool:
        """Whether there are lines to read, and room for them."""
        return self.look is not None and not self._lines and self.position < self.look.last_line

    def take(self) -> Sequence[KeptLine]:
        """The lines that came since the last call."""
        taken, self._lines = self._lines, ()
        return taken

    def given(self, lines: Sequence[KeptLine]) -> bool:
        """The lines after its position. Says whether there were any, also such that are told at a later look."""
        self._lines = list(takewhile(self._is_settled, lines))
        if self._lines:
            self.position = self._lines[-1].id
            self.changed.set()
        return bool(lines)

    def _is_settled(self, line: KeptLine) -> bool:
        """Whether no line can come before it any more: its attempt has ended, or it is old enough."""
        look = self.look
        if look is not None and (
            line.attempt < look.attempt or (line.attempt == look.attempt and look.state is not State.RUNNING)
        ):
            return True
        return line.now_us - line.at_us >= SETTLED_US


async def _look(engine: Engine, watches: Collection[JobWatch]) -> bool:
    changed = await tell_standing(engine, watches, watched)
    readers = [watch for watch in watches if watch.wants_lines]
    for some in in_parts(readers, READERS_MAX):
        asked = [(watch.job_id, watch.position) for watch in some]
        pages = await engine.arun(lines_after(asked, limit=LINES_MAX))
        for watch, lines in zip(some, pages, strict=True):
            changed = watch.given(lines) or changed
    return changed


watchers = WatchingByApp[JobWatch](lambda engine: Watching(engine, _look, "jobs that are watched"))
