"""The loops that look after the tables: the same in every worker, with no leader, beside the jobs it runs.

They are work in the background. What fails here fails in every worker, so that a worker which ended by it would take
the next one with it; it is stated on the row of each instead, and jobs go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fencerow.core.config import Config
from fencerow.core.db.engine import Engine
from fencerow.core.telemetry import Telemetry
from fencerow.core.worker.hearing import Hearing
from fencerow.core.worker.lease import Lease
from fencerow.core.worker.loop import Loop
from fencerow.core.worker.reaper import Reaper
from fencerow.retention.disowner import Disowner
from fencerow.retention.maintenance import Maintenance


def upkeep_loops(
    engine: Engine,
    lease: Lease,
    config: Config,
    telemetry: Telemetry,
    hearing: Hearing,
    *,
    actor: str,
    queues: Callable[[], Iterable[str]],
) -> list[Loop]:
    """The reaper, the disowner for these queues, and retention."""
    reaper = Reaper(
        engine,
        lease,
        config,
        telemetry,
        actor=actor,
        on_queued=hearing.announce_queued,
        on_ended=hearing.announce_ended,
    )
    disowner = Disowner(
        engine,
        telemetry,
        age_s=config.unknown_max_s,
        actor=actor,
        queues=queues,
        on_ended=hearing.announce_ended,
    )
    maintenance = Maintenance(engine, config, telemetry)
    return [
        Loop("reaper", reaper.tick, telemetry, jitter=0.2, background=True),
        Loop("disowner", disowner.tick, telemetry, jitter=0.2, background=True),
        Loop("maintenance", maintenance.tick, telemetry, jitter=0.2, background=True),
    ]
