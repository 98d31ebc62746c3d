"""Many at once, on real connections: one does it, and all the others get what it came to."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from fencerow.guards.once import DedupeWindow, once
from fencerow.guards.replace import replace_for
from tests.guards.places import At
from tests.kit.jobs import AnyEngine

CROWD = 8


def test_one_of_a_crowd_does_it(engine: AnyEngine) -> None:
    at, done, together = At(engine), [], threading.Barrier(CROWD)

    def effect(who: int) -> int:
        done.append(who)
        return who

    def ask(who: int) -> int:
        together.wait(30)
        return once(at, "k", wait_s=30, timeout_s=30).call(effect, who)

    with ThreadPoolExecutor(CROWD) as crowd:
        answers = list(crowd.map(ask, range(CROWD)))

    assert len(done) == 1 and answers == done * CROWD


async def test_one_of_a_crowd_on_an_event_loop_computes(engine: AnyEngine) -> None:
    at, computed = At(engine), []
    table = "fencerow.parts" if engine.dialect == "postgres" else "parts"
    with engine.session() as session:
        session.connection.execute(f"CREATE TABLE {table} (source text, who integer)")

    async def embed(who: int) -> bool:
        async with replace_for(
            at, table=table, source_column="source", source="faq", content_hash="a"
        ) as replacing:
            if replacing.needed:
                computed.append(who)
                await replacing.ainsert([{"who": who}])
            return replacing.written

    written = await asyncio.gather(*map(embed, range(CROWD)))

    assert len(computed) == 1 and written.count(True) == 1


async def test_one_of_a_crowd_is_new(engine: AnyEngine) -> None:
    window = DedupeWindow(At(engine), "posts", 60, timeout_s=30)

    admitted = await asyncio.gather(*(window.aadmit("k", f"job-{who}") for who in range(CROWD)))

    (new,) = [each for each in admitted if each.is_new]
    assert {each.value for each in admitted} == {new.value}
