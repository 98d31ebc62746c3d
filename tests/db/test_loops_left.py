"""Event loops that nobody closes."""

from __future__ import annotations

import asyncio
import threading
import time

import psycopg
import pytest

from fencerow.core.store import store
from fencerow_proof.servers.pgbouncer import is_pooled
from tests.conftest import postgres_engine
from tests.kit.pace import PATIENCE_S

OPEN = "SELECT pid FROM pg_stat_activity WHERE application_name = 'fencerow' AND datname = current_database()"


def end(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for each in tasks:
        each.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    loop.close()


def test_their_connections_are_given_back(postgres_url: str) -> None:
    if is_pooled(postgres_url):
        pytest.skip("the server sees the connections of the pooler, which keeps them")
    engine = postgres_engine(postgres_url)
    loops = [asyncio.new_event_loop() for _ in range(3)]

    def request(loop: asyncio.AbstractEventLoop) -> None:
        loop.run_until_complete(engine.arun(store.clock()))

    def until_open(count: int) -> bool:
        """The server sees a moment later that a client has gone."""
        until = time.monotonic() + PATIENCE_S
        while (found := len(watching.execute(OPEN).fetchall())) != count and time.monotonic() < until:
            time.sleep(0.01)
        return found == count

    with psycopg.connect(postgres_url, autocommit=True) as watching:
        for loop in loops:
            thread = threading.Thread(target=request, args=[loop])
            thread.start()
            thread.join(PATIENCE_S)
        is_one = until_open(1)
        engine.close()
        is_none = until_open(0)
    for loop in loops:
        end(loop)

    assert is_one and is_none
