"""What retention removes of the guards: keys, windows, sources, row leases and mutexes past their time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import fencerow.guards.mutex.mutexes as mutexes
from fencerow.core.config import CoreConfig
from fencerow.core.wing import Purge
from fencerow.db.engine import Engine
from fencerow.db.removal import RemovalInRounds, removed
from fencerow.guards.once.reserving import purge_once
from fencerow.guards.once.window import purge_windows
from fencerow.guards.replace.sources import purge_sources
from fencerow.guards.settings import GuardSettings
from fencerow.guards.transitions.handing import purge_row_leases

BATCH_ROWS = 500
MUTEXES_KEPT_S = 30 * 86_400.0  # since anybody held or renewed it
MUTEX_KEYS = 5000  # at a look


def purges(engine: Engine, config: CoreConfig) -> Sequence[Purge]:
    """One for each kind of row."""
    removals = (
        purge_once(limit=BATCH_ROWS),
        purge_windows(limit=BATCH_ROWS),
        purge_row_leases(limit=BATCH_ROWS),
        purge_sources(age_s=GuardSettings.of(config).retention_sources_s, limit=BATCH_ROWS),
    )
    return [
        *(partial(removed, engine, removal, limit=BATCH_ROWS) for removal in removals),
        RemovalInRounds(engine, partial(mutexes.purge, age_s=MUTEXES_KEPT_S, limit=MUTEX_KEYS), "").round,
    ]
