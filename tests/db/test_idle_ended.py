"""A server that ends idle sessions: those that it ended are replaced at once, and what it never saw goes again."""

from __future__ import annotations

import asyncio
import threading
import time

import psycopg
import pytest
from psycopg_pool.base import AttemptWithBackoff

from fencerow.core.store import store
from fencerow.db import pool_wait
from fencerow.db.postgres import PostgresEngine
from fencerow.db.preparing import Preparing
from fencerow.db.run import Operation, Steps
from fencerow.db.tries import Try, tries
from fencerow.db.watchdog import is_readable
from fencerow_proof.servers.pgbouncer import is_pooled
from tests.db.test_at_once import END_OTHERS
from tests.kit.pace import PATIENCE_S

ENDED = psycopg.errors.IdleSessionTimeout("terminating connection due to idle-session timeout")
FULL = psycopg.errors.DiskFull("could not extend file")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever pauses before a new connection never gets it."""
    monkeypatch.setattr(AttemptWithBackoff, "INITIAL_DELAY", 10 * PATIENCE_S)
    monkeypatch.setattr(pool_wait, "WAIT_SLICE_S", 10 * PATIENCE_S)
    monkeypatch.setattr(pool_wait, "REST_S", 10 * PATIENCE_S)


@pytest.fixture
def engine(postgres_url: str) -> PostgresEngine:
    if is_pooled(postgres_url):
        pytest.skip("the pooler's sessions end, and not ours")
    return PostgresEngine(
        postgres_url, store.postgres_queries(), pool_max=6, connect_timeout_s=20 * PATIENCE_S
    )


async def test_all_idle_ones_of_an_event_loop_are_replaced_at_once(engine: PostgresEngine) -> None:
    pools = engine._pools
    async with pools.aconnection() as one, pools.aconnection() as two, pools.aconnection() as three:
        numbers = [each.fileno() for each in (one, two, three)]
    await asyncio.to_thread(end_all, engine, numbers)

    async with asyncio.timeout(PATIENCE_S):
        await engine.arun(store.clock())
    await engine.aclose()


def test_all_idle_ones_of_threads_are_replaced_at_once(engine: PostgresEngine) -> None:
    pools = engine._pools
    with pools.connection() as one, pools.connection() as two, pools.connection() as three:
        numbers = [each.fileno() for each in (one, two, three)]
    end_all(engine, numbers)

    answered = threading.Event()

    def ask() -> None:
        engine.run(store.clock())
        answered.set()

    threading.Thread(target=ask, daemon=True).start()
    assert answered.wait(PATIENCE_S)
    engine.close()


def test_what_the_server_never_saw_goes_again_though_it_may_not_be_repeated() -> None:
    trying = tries(Operation("claim", nothing), Preparing(wanted=False))
    first = next(trying)
    assert isinstance(first, Try)
    first.committing = True

    second = trying.throw(ENDED)
    assert isinstance(second, Try)
    with pytest.raises(psycopg.errors.DiskFull):  # and no doubt: the first stored nothing
        trying.throw(FULL)


def nothing() -> Steps[None]:
    yield from ()


def end_all(engine: PostgresEngine, numbers: list[int]) -> None:
    """The server has ended these, and its last word is there."""
    with psycopg.connect(engine.conninfo, autocommit=True) as other:
        other.execute(END_OTHERS)
    until = time.monotonic() + PATIENCE_S
    while not all(is_readable(each) for each in numbers):
        assert time.monotonic() < until
        time.sleep(0.001)
