"""The loops that look after the tables: the same in every worker, with no leader, beside the jobs it runs.

They are work in the background. What fails here fails in every worker, so that a worker which ended by it would take
the next one with it; it is stated on the row of each instead, and jobs go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fencerow.config import Config
from fencerow.db.engine import Engine
from fencerow.telemetry import Telemetry
from fencerow.worker.disowner import Disowner
from fencerow.worker.hearing import Hearing
from fencerow.worker.lease import Lease
from fencerow.worker.loop import Loop
from fencerow.worker.maintenance import Maintenance
from fencerow.worker.reaper import Reaper


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
