"""What retention removes of relays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import fencerow.relay.relays as relays
from fencerow.core.config import CoreConfig
from fencerow.db.engine import Engine
from fencerow.db.removal import removed
from fencerow.retention.settings import RetentionSettings

if TYPE_CHECKING:
    from fencerow.core.wing import Purge

PURGE_ROWS: Final = 1000
DEAD_S: Final = 3600.0


def purges(engine: Engine, config: CoreConfig) -> Sequence[Purge]:
    """What could not be read, once it is as old as failed jobs may become; and processes that died long ago."""
    age_s = RetentionSettings.of(config).retention_failed_s
    unread = relays.purge_unread(age_s=age_s, limit=PURGE_ROWS)

    async def dead() -> None:
        await engine.arun(relays.forget_dead(age_s=DEAD_S))

    return (partial(removed, engine, unread, limit=PURGE_ROWS), dead)
