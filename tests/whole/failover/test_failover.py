"""The primary dies and a standby takes its place: everybody is back soon, and nothing that was confirmed is missing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from fencerow import Config
from fencerow.core.store import store
from fencerow.db import thread_pools
from fencerow.db.borrow import borrowed
from fencerow.db.pools import Pools
from fencerow.db.postgres import PostgresEngine
from fencerow.db.thread_pools import hosts
from fencerow.doctor.examine import examine
from fencerow.errors import ReadOnly
from fencerow_proof.network.proxy import FaultProxy
from tests.kit.jobs import new_job
from tests.kit.pace import PATIENCE_S, slower
from tests.whole.failover.conftest import DATABASE, ROLE, Pair
from tests.whole.outages.after import check_books
from tests.whole.outages.callers import calling, until
from tests.whole.outages.shop import Shop, staffed

pytestmark = pytest.mark.timed

BACK_S = slower(5.0)


async def test_all_go_on_with_the_standby_within_five_seconds_and_lose_nothing(
    pair: Pair, caplog: pytest.LogCaptureFixture, report: Callable[[str], None]
) -> None:
    counter, first, second = (Shop(pair.url, connect_timeout_s=2.0) for _ in range(3))
    await asyncio.to_thread(counter.prepare)
    pair.wait_for_standby_at_commit()
    async with staffed(first, second), calling(counter) as callers:
        await callers.accepted_more(60)
        await asyncio.to_thread(pair.primary.stop, "immediate")
        await asyncio.sleep(1.0)  # nobody takes writes, as until an operator has decided
        await asyncio.to_thread(pair.standby.promote)
        promoted_at = time.monotonic()
        back_s = [await shop.first_success_after(promoted_at) for shop in (first, second)]
        accepted = len(callers.accepted)
        await until(lambda: len(callers.accepted) > accepted, "submits are accepted again")
        heard = await _hears(first)
        await callers.stop()
        told = await check_books(counter, callers)
    for shop in (counter, first, second):
        await shop.app.aclose()

    report(f"back {[round(each, 2) for each in back_s]} s after the promotion; {told}")
    assert max(back_s) < BACK_S, back_s
    assert heard, "LISTEN has found the new primary"
    assert "on another server or timeline now" in caplog.text
    assert "has lost writes" not in caplog.text
    found = {each.name: each for each in await asyncio.to_thread(examine, Config(url=pair.url))}
    assert found["lost commits"].level == "ok"
    assert found["writable"].level == "ok"


@pytest.mark.prove
async def test_a_primary_that_is_gone_without_a_word_is_left_too(
    pair: Pair, report: Callable[[str], None]
) -> None:
    """As when a machine loses its power: what is under way gets no answer, and neither does a new connection."""
    with FaultProxy(pair.primary.port) as front:
        places = f"127.0.0.1:{front.port},127.0.0.1:{pair.standby.port}"
        url = (
            f"postgresql://{ROLE}:{pair.primary.password}@{places}/{DATABASE}?target_session_attrs=read-write"
        )
        shop = Shop(url, connect_timeout_s=4.0, statement_timeout_s=2.0)
        await asyncio.to_thread(shop.prepare)
        pair.wait_for_standby_at_commit()
        async with staffed(shop):
            began = time.monotonic()
            await shop.look.asubmit(1)
            await shop.first_success_after(began)
            front.black_hole()
            await asyncio.to_thread(pair.fail_over)
            promoted_at = time.monotonic()
            counter = Shop(pair.url)
            await counter.look.asubmit(2)
            back_s = await shop.first_success_after(promoted_at)
        await shop.app.aclose()
        await counter.app.aclose()
    report(f"back {back_s:.2f} s after the promotion, from a primary that never answers")
    # The answer that does not come is waited for, then the host that does not answer: 2 s each, and each loop's pause.
    assert back_s < 4.0 + BACK_S


async def _hears(shop: Shop) -> bool:
    heard = asyncio.Event()
    loop = asyncio.get_running_loop()

    def listen(_word: str | None) -> None:
        loop.call_soon_threadsafe(heard.set)

    stop = shop.app.engine.listen(listen)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await heard.wait()  # "look for yourself" is said once it listens
        return True
    finally:
        await asyncio.to_thread(stop)


def tell_read_only(pair: Pair) -> None:
    """Demote the primary under those who are connected to it, and promote the other."""
    with psycopg.connect(pair.primary.conninfo("app"), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        connection.execute("SELECT pg_reload_conf()")
        deadline = time.monotonic() + PATIENCE_S
        while connection.execute("SHOW default_transaction_read_only").fetchone() != ("on",):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    pair.standby.catch_up()
    pair.standby.promote()


def used(pair: Pair, **settings: Any) -> PostgresEngine:
    """An engine with connections to the primary."""
    engine = PostgresEngine(pair.url, store.postgres_queries(), **settings)
    store.migrate(engine)
    engine.run(store.submit([new_job()]))
    return engine


@pytest.mark.prove
async def test_whoever_is_still_connected_to_a_server_that_takes_no_more_writes_leaves_it(pair: Pair) -> None:
    engine = used(pair)
    await asyncio.gather(*(engine.arun(store.submit([new_job()])) for _ in range(8)))
    await asyncio.to_thread(tell_read_only, pair)

    engine.run(store.submit([new_job()]))
    await asyncio.gather(*(engine.arun(store.submit([new_job()])) for _ in range(8)))
    with psycopg.connect(pair.standby.conninfo("app")) as there:
        assert there.execute("SELECT count(*) FROM fencerow.jobs").fetchone() == (18,)
    await engine.aclose()


@pytest.mark.prove  # a control
def test_without_leaving_it_would_be_refused_for_ever(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = used(pair)
    tell_read_only(pair)
    monkeypatch.setattr(thread_pools, "REFUSES_WRITES", ())
    for _ in range(3):
        with pytest.raises(ReadOnly, match="target_session_attrs"):
            engine.run(store.submit([new_job()]))
    engine.close()


@pytest.mark.prove
def test_a_user_s_transaction_is_refused_once_and_the_next_one_is_where_writes_are_taken(pair: Pair) -> None:
    engine = used(pair)
    with engine.session() as session:
        session.connection.execute("SELECT 1")
    tell_read_only(pair)
    insert = "INSERT INTO fencerow.queues (name) VALUES ('vip')"
    with pytest.raises(ReadOnly), engine.session() as session:
        session.connection.execute(insert)
    with engine.session() as session:
        session.connection.execute(insert)
    engine.close()


@pytest.mark.prove
def test_a_connection_of_the_user_s_to_a_standby_is_refused_and_reads_on(pair: Pair) -> None:
    engine = used(pair)
    pair.standby.catch_up()
    job = new_job()
    with psycopg.connect(pair.standby.conninfo("app", "app")) as there:
        for _ in range(2):
            with pytest.raises(ReadOnly, match="a standby"):
                borrowed(there, engine).run(store.submit([job]))
        assert borrowed(there, engine).run(store.read([job.id])) == {}
    found = {each.name: each for each in examine(Config(url=pair.standby.conninfo("app", "app")))}
    assert found["writable"].level == "fail"
    assert "target_session_attrs" in str(found["writable"].fix)
    engine.close()


def test_each_host_gets_its_share_of_the_time_for_connecting() -> None:
    def timeout(url: str) -> int:
        made = Pools(url, pool_max=2, connect_timeout_s=9, statement_timeout_s=1)
        return int(made.client_settings()["connect_timeout"])

    assert timeout("postgresql://a@h/d") == timeout("postgresql:///d") == 9
    assert timeout("postgresql://a@h1,h2:5433,h3/d") == 3
    assert timeout("postgresql:///d?host=/a,/b,/c,/d,/e,/f") == 2, "libpq takes no less"
    assert hosts("postgresql://[") == 1
