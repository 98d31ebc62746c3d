"""Ends that nobody confirms, and what is under way."""

from __future__ import annotations

from collections.abc import Iterator

from fencerow.command.times import span
from fencerow.core.config import CoreConfig
from fencerow.core.finding import Finding, ok, warn
from fencerow.db.engine import Engine
from fencerow.db.text import amount
from fencerow.handovers.looking import COUNTED_MAX, UnconfirmedLine, counted, unconfirmed

LATE_S = 3600.0
SHOWN_MAX = 5


def examine_handovers(engine: Engine, _config: CoreConfig) -> Iterator[Finding]:
    """Which lines stand still because nobody takes or confirms what is first there."""
    counts = engine.run(counted())
    more = " or more" if counts.open >= COUNTED_MAX else ""
    yield ok("handovers", f"{counts.open}{more} not confirmed, of which {counts.ended} could be")
    for each in engine.run(unconfirmed(age_s=LATE_S, limit=SHOWN_MAX)):
        yield _stuck(each)


def _stuck(line: UnconfirmedLine) -> Finding:
    since = span((line.now_us - line.ended_at_us) / 1e6)
    taken = "never taken" if line.token == 0 else f"taken {amount(line.token, 'time')}"
    behind = f"; {line.ends} of its key wait so long" if line.ends > 1 else ""
    return warn(
        "handover that nobody confirms",
        f"job {line.job_id} ended {since} ago, and its end was {taken} by receiver {line.receiver!r} "
        f"and not confirmed: key {line.key}{behind}",
        "start the receiver, or look at its log; "
        f"`fencerow handovers confirm {line.job_id}` gives this end up and lets the next go on",
    )
