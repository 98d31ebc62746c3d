"""The loops that look after the tables: the same in every worker, with no leader, beside the jobs it runs.

They are work in the background. What fails here fails in every worker, so that a worker which ended by it would take
the next one with it; it is stated on the row of each instead, and jobs go on.
"""

from __future__ import annotations

from fencerow.core.chore import Site
from fencerow.core.worker.brought import brought
from fencerow.core.worker.hearing import Hearing
from fencerow.core.worker.lease import Lease
from fencerow.core.worker.loop import Loop
from fencerow.core.worker.reaper import Reaper


def upkeep_loops(site: Site, lease: Lease, hearing: Hearing) -> list[Loop]:
    """The reaper, and what the wings want done."""
    reaper = Reaper(
        site.engine,
        lease,
        site.config,
        site.telemetry,
        actor=f"worker {site.worker}",
        on_queued=hearing.announce_queued,
        on_ended=hearing.announce_ended,
    )
    chores = [chore for make in brought().chores for chore in make(site)]
    each = [("reaper", reaper.tick), *((chore.name, chore.tick) for chore in chores)]
    return [Loop(name, tick, site.telemetry, jitter=0.2, background=True) for name, tick in each]
