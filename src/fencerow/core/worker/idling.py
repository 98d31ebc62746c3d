"""When a worker that ends once nothing is left has come to that."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from fencerow.core.config import CoreConfig
from fencerow.core.model.worker_labels import parsed_labels
from fencerow.core.store import store
from fencerow.core.worker.assembly import Assembly
from fencerow.core.worker.brought import brought
from fencerow.db.engine import Engine
from fencerow.db.trouble import is_trouble

LOOK_AGAIN_S = 0.05  # for a job that is due and that somebody locks


async def until_idle(engine: Engine, config: CoreConfig, names: Sequence[str], parts: Assembly) -> None:
    """Until a look from the beginning found nothing due, nothing is held here, and no due job is merely locked."""
    while True:
        await asyncio.sleep(config.poll_min_s)
        if not _holds_nothing(parts):
            continue
        if parts.life.paused:
            return
        # Again: a job may have got its turn meanwhile, and be claimed by now.
        if not await _any_due(engine, config, names, parts) and _holds_nothing(parts):
            return
        parts.wakeups.look_again()
        await asyncio.sleep(LOOK_AGAIN_S)


def _holds_nothing(parts: Assembly) -> bool:
    """Whether nothing is held here, a look from the beginning found nothing due, and no chore is at its work."""
    is_held = parts.roster.held or parts.acker.backlog
    return not is_held and parts.claims.are_idle() and parts.chores.are_idle()


async def _any_due(engine: Engine, config: CoreConfig, names: Sequence[str], parts: Assembly) -> bool:
    """Whether a job is due here; while the database cannot tell, there may be."""
    queues = parts.roster.queues()
    try:
        # First what wings will queue: it is due then.
        if await any_soon(engine, parts):
            return True
        return await engine.arun(store.any_due(queues, list(names), parsed_labels(config.labels)))
    except Exception as error:
        if not is_trouble(error):
            raise
        return True


async def any_soon(engine: Engine, parts: Assembly) -> bool:
    """Whether a wing or a chore of this worker will queue jobs at once, as far as the database tells."""
    for queues_soon in brought().queues_soon:
        if await engine.arun(queues_soon()):
            return True
    return await parts.chores.queue_soon()
