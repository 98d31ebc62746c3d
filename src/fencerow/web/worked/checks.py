"""Attempts whose endpoints answer later, for `doctor`: how many wait, and those that are overdue and nobody wakes."""

from __future__ import annotations

from collections.abc import Iterator

from fencerow.command.times import span
from fencerow.core.config import CoreConfig
from fencerow.core.finding import Finding, ok, warn
from fencerow.db.engine import Engine
from fencerow.db.text import amount
from fencerow.web.worked.attempts import standing

LATE_S = 60.0
LOOKED_AT = 10_000


def examine_worked(engine: Engine, _config: CoreConfig) -> Iterator[Finding]:
    """Nothing is said where no endpoint answers later."""
    found = engine.run(standing(look=LOOKED_AT, late_s=LATE_S))
    if found.waiting:
        yield ok("jobs worked over HTTP", f"{amount(found.waiting, 'attempt')} may be answered later")
    if found.late:
        yield warn(
            "endpoints that nobody gives up",
            f"{amount(found.late, 'attempt')} overdue, the first for {span(found.late_s)}, and no worker wakes the job",
            "run a worker whose application declares these jobs with callbacks=",
        )
