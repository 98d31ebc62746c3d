"""Connections break before a statement arrives, or after it was done and before its answer came."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from fencerow.testing.postgres import PostgresServer
from fencerow_proof.network.proxy import FaultProxy
from tests.kit.servers import CopiedServer
from tests.whole.outages.after import check_books
from tests.whole.outages.callers import calling, until
from tests.whole.outages.cuts import OF_CALLERS, OF_WORKERS
from tests.whole.outages.shop import Shop, staffed

pytestmark = pytest.mark.timed

ROUNDS = 2


@pytest.mark.parametrize(
    "patience_s", [5.0, pytest.param(0.0, marks=pytest.mark.prove)], ids=["patient", "impatient"]
)
async def test_cuts_lose_and_repeat_nothing(patience_s: float, report: Callable[[str], None]) -> None:
    """Patient callers let the client find out what became of a submit; impatient ones are told to ask."""
    with CopiedServer(fast=True, tcp=True) as server, ExitStack() as stack:
        direct = Shop(server.create_role_and_schema())
        await asyncio.to_thread(direct.prepare)
        before_workers, before_callers = (stack.enter_context(FaultProxy(server.port)) for _ in range(2))
        worker = Shop(_through(before_workers, server), renew_s=0.2)
        counter = Shop(_through(before_callers, server))
        counter.app.client.patience_s = patience_s
        # To the workers' connections it is all the same how patient the callers are.
        wanted = [
            *((before_workers, text) for text in OF_WORKERS.values() if patience_s),
            *((before_callers, text) for text in OF_CALLERS.values()),
        ]
        cuts = 0
        async with staffed(worker), calling(counter) as callers:
            await callers.accepted_more(20)
            for _, (proxy, text), how in itertools.product(range(ROUNDS), wanted, ("before", "after")):
                seen = proxy.cuts
                (proxy.cut_before if how == "before" else proxy.cut_after_reply_to)(text)
                await until(lambda: proxy.cuts > seen, f"the cut {how} {text!r}")  # noqa: B023 (awaited here)
                cuts += 1
            await callers.stop()
            told = await check_books(direct, callers)
        for shop in (worker, counter, direct):
            await shop.app.aclose()

    report(f"{cuts} cuts; {told}; worker {dict(worker.happened)}")
    assert (callers.asked > 0) == (patience_s == 0.0)
    assert cuts == ROUNDS * 2 * len(wanted) >= (20 if patience_s else 8)


def _through(proxy: FaultProxy, server: PostgresServer) -> str:
    return f"postgresql://app:{server.password}@127.0.0.1:{proxy.port}/app"
