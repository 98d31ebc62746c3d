"""Whether finished jobs on PostgreSQL find a period, and old ones leave with theirs."""

from __future__ import annotations

from collections.abc import Iterator

from fencerow.core.config import CoreConfig
from fencerow.core.finding import Finding, info, ok, warn
from fencerow.core.model.state import State
from fencerow.db.engine import Engine
from fencerow.retention.periods import AHEAD, Period, owns_periods, periods
from fencerow.retention.settings import RetentionSettings

OWNER = "a worker whose role owns the tables makes them"


def examine_periods(engine: Engine, config: CoreConfig) -> Iterator[Finding]:
    """Periods ahead, and tables that could not be removed; nothing where there are no periods."""
    if not engine.traits.has_periods:
        return
    known = engine.run(periods())
    is_owner = engine.run(owns_periods())
    kept = RetentionSettings.of(config)
    wanted = {
        State.SUCCEEDED: kept.retention_succeeded_s,
        State.FAILED: kept.retention_failed_s,
        State.CANCELLED: kept.retention_cancelled_s,
    }
    states = [state for state, age_s in wanted.items() if age_s >= kept.retention_period_s]
    if not known:
        who = "a worker makes them in its first minutes" if is_owner else OWNER
        yield info("periods", f"none were made yet; until then finished jobs go row by row: {who}")
    else:
        yield from _ahead(known, states)
    stuck = [each for each in known if each.stage == "detaching"]
    if stuck:
        yield warn(
            "periods",
            f"{', '.join(each.partition for each in stuck)} cannot be removed yet",
            "a long transaction reads it or holds an older snapshot: see the old snapshots above",
        )


def _ahead(known: list[Period], states: list[State]) -> Iterator[Finding]:
    counts = {state: sum(each.is_ahead for each in known if each.state is state) for state in states}
    short = [state for state, ahead in counts.items() if ahead < AHEAD]
    if short:
        yield warn(
            "periods",
            f"fewer than {AHEAD} are ahead for {', '.join(short)} jobs; without one they go row by row",
            f"start a worker: {OWNER}",
        )
    else:
        yield ok("periods", f"{len(known)}, and {AHEAD} or more ahead of each state")
