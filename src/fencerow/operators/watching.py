"""Jobs that are watched while they run: how they stand, and the lines that came since. For many who watch at once."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from fencerow.core.model.job import At, AtOrNone
from fencerow.core.model.state import FINAL, State
from fencerow.db.run import Steps, as_int, as_int_or_none, execute, operation, text_or_none


class WatchedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job as those see it who watch it. `last_line`: the newest line that is kept with it, 0 if there is none."""

    id: str
    queue: str
    state: State
    attempt: int
    failures: int
    run_at_us: int
    claimed_at_us: int | None
    ended_at_us: int | None
    cancel_requested_at_us: int | None
    progress: float | None
    progress_note: str | None
    last_line: int = 0

    run_at = At("run_at_us")
    claimed_at = AtOrNone("claimed_at_us")
    ended_at = AtOrNone("ended_at_us")
    cancel_requested_at = AtOrNone("cancel_requested_at_us")

    @property
    def is_final(self) -> bool:
        """Whether it has ended."""
        return self.state in FINAL


class KeptLine(msgspec.Struct, frozen=True):
    """A line that is kept with a job; `id` is its place among all lines, and `now_us` when it was read."""

    id: int
    attempt: int
    at_us: int
    level: str
    message: str
    now_us: int

    at = At("at_us")
    now = At("now_us")


@operation(alone=True, repeatable=True, writes="")
def watched(ids: Sequence[str]) -> Steps[dict[str, WatchedJob]]:
    """How these jobs stand; one that is nowhere is not in the answer."""
    rows = yield from execute("watched", ids=list(ids))
    return {
        str(row[0]): WatchedJob(
            id=str(row[0]),
            queue=str(row[1]),
            state=State(str(row[2])),
            attempt=as_int(row[3]),
            failures=as_int(row[4]),
            run_at_us=as_int(row[5]),
            claimed_at_us=as_int_or_none(row[6]),
            ended_at_us=as_int_or_none(row[7]),
            cancel_requested_at_us=as_int_or_none(row[8]),
            progress=float(row[9]) if isinstance(row[9], (int, float)) else None,
            progress_note=text_or_none(row[10]),
            last_line=as_int(row[11]),
        )
        for row in rows
    }


@operation(alone=True, repeatable=True, writes="")
def lines_after(readers: Sequence[tuple[str, int]], *, limit: int) -> Steps[list[list[KeptLine]]]:
    """For each reader, a job and the line that it read last, the next lines in order, at most `limit`.

    On PostgreSQL two lines of one attempt that are written at once may become visible in the other order.
    """
    wanted = [
        {"number": number, "job": job_id, "position": position}
        for number, (job_id, position) in enumerate(readers)
    ]
    rows = yield from execute("lines_after", wanted=json.dumps(wanted), limit=limit)
    found: list[list[KeptLine]] = [[] for _ in readers]
    for row in rows:
        found[as_int(row[0])].append(
            KeptLine(as_int(row[1]), as_int(row[2]), as_int(row[3]), str(row[4]), str(row[5]), as_int(row[6]))
        )
    return found
