"""What a worker does to the garbage collector of its process."""

from __future__ import annotations

import gc

from fencerow.db.postgres import PostgresEngine
from tests.core.worker.stage import working


async def work() -> None: ...


async def test_a_worker_keeps_the_collector_from_what_was_there_before_it(pg: PostgresEngine) -> None:
    before = gc.get_freeze_count()
    gc.unfreeze()  # what the tests' own process has left out
    try:
        async with working(pg, work), working(pg, work):
            assert gc.get_freeze_count()
        assert not gc.get_freeze_count()
    finally:
        if before:
            gc.freeze()
