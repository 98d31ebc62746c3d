"""Suspended jobs, for `doctor`: how many wait, and those whose time is over that nobody wakes."""

from __future__ import annotations

from collections.abc import Iterator

from fencerow.command.times import span
from fencerow.core.config import CoreConfig
from fencerow.core.finding import Finding, ok, warn
from fencerow.db.engine import Engine
from fencerow.steps.memory import waiting_for

LATE_S = 60.0
COUNTED_MAX = 1_000


def examine_steps(engine: Engine, _config: CoreConfig) -> Iterator[Finding]:
    """How many jobs sleep or wait for a signal, and whether workers wake the due."""
    waits = engine.run(waiting_for(limit=COUNTED_MAX))
    more = " or more" if len(waits) == COUNTED_MAX else ""
    signals = sum(each.signal is not None for each in waits)
    yield ok("suspended jobs", f"{len(waits)}{more} wait, {signals} of them for a signal")
    late = [
        each for each in waits if each.until_us is not None and each.now_us - each.until_us > LATE_S * 1e6
    ]
    if late:
        first = late[0]
        since = span((first.now_us - (first.until_us or 0)) / 1e6)
        yield warn(
            "jobs that nobody wakes",
            f"the wait of {len(late)} suspended jobs is over, of job {first.job_id} since {since}",
            "start a worker (any wakes them), or look at its log for the chore `steps`",
        )
