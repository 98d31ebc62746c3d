"""What a worker does to the garbage collector of its process."""

from __future__ import annotations

import gc

from fencerow.db.memory import FrozenMemory
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


def test_what_the_application_froze_meanwhile_stays_so() -> None:
    before = gc.get_freeze_count()
    gc.unfreeze()
    try:
        settled = FrozenMemory()
        settled.begin()
        of_the_application = [[number] for number in range(1000)]
        gc.freeze()
        settled.end()
        assert gc.get_freeze_count() > len(of_the_application)
        gc.unfreeze()
    finally:
        if before:
            gc.freeze()
