"""The server is killed and comes back, again and again, while everybody works."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.thread_pools import RECONNECT_S
from fencerow.testing.postgres import PostgresServer
from tests.kit.pace import slower
from tests.kit.servers import CopiedServer
from tests.whole.outages.after import check_books
from tests.whole.outages.callers import calling
from tests.whole.outages.shop import Shop, staffed

pytestmark = pytest.mark.timed

AWAY_S = (0.3, 2.0, 7.0)  # the longer it is away, the longer are the pauses between two tries
BACK_S = slower(5.0)


async def test_all_come_back_by_themselves_within_five_seconds(
    report: Callable[[str], None], fronted: Callable[[PostgresServer, str], str]
) -> None:
    with CopiedServer(fast=True) as server:
        url = fronted(server, server.create_role_and_schema())
        # A quick answer to callers, so that there are many of them; the workers keep the defaults.
        counter, first, second = Shop(url, connect_timeout_s=0.5), Shop(url), Shop(url)
        await asyncio.to_thread(counter.prepare)
        back_s = []
        async with staffed(first, second), calling(counter) as callers:
            for away_s in AWAY_S:
                await callers.accepted_more(40)
                await asyncio.to_thread(server.stop, "immediate")
                await asyncio.sleep(away_s)
                await asyncio.to_thread(server.start)
                accepts_at = time.monotonic()
                back_s.append([await shop.first_success_after(accepts_at) for shop in (first, second)])
            await callers.stop()
            told = await check_books(counter, callers)
        for shop in (counter, first, second):
            await shop.app.aclose()

    report(
        f"{len(back_s)} kills; back after {[[round(each, 2) for each in pair] for pair in back_s]} s; {told}"
    )
    assert max(max(pair) for pair in back_s) < BACK_S
    assert callers.errors.total() > 0
    assert callers.refused


@pytest.mark.prove
async def test_one_who_waits_through_the_outage_gets_a_connection_when_the_server_is_back() -> None:
    """The pool stops trying after a while; only somebody who asks anew makes it try again."""
    with CopiedServer(fast=True) as server:
        engine = PostgresEngine(server.create_role_and_schema(), store.postgres_queries())
        await asyncio.to_thread(store.migrate, engine)
        server.stop("immediate")

        async def wait_for_one() -> float:
            async with engine.asession() as session:
                await session.arun(store.clock())
            return time.monotonic()

        waiting = asyncio.create_task(wait_for_one())
        await asyncio.sleep(3 * RECONNECT_S)  # the pool has given up by now
        await asyncio.to_thread(server.start)
        back_at = time.monotonic()

        assert await waiting - back_at < BACK_S
        await engine.aclose()
