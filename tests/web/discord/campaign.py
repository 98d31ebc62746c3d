"""Interactions while the database is silent, locked or gone: each is answered in three seconds, and none is half known.

    python -m tests.web.discord.campaign --engine postgres --interactions 1000 --evidence FILE

Each round sends some at once, and a fault strikes around them and lasts a drawn time. When all is calm again, each that
was deferred must have exactly its job, each that was told "busy" none or its own, and there may be no other.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg

from fencerow import App, Config
from fencerow.core.store import store
from fencerow.errors import FencerowError
from fencerow.testing.postgres import PostgresServer
from fencerow.web.discord import Discord, Interaction, ReplyTo
from fencerow.web.discord.interaction import interaction_of
from fencerow.web.gateway.server import Server
from fencerow.web.settings import WebSettings
from fencerow_proof.network.proxy import FaultProxy
from tests.web.discord.double import Signs
from tests.web.gateway.serving import serving_on

LIMIT_S = 3.0
AT_ONCE = 8
KIND = {4: "busy", 5: "deferred"}


class Ground:
    """A database whose faults are made here: `kinds` of them."""

    kinds: tuple[str, ...] = ("locked",)

    def __init__(self, url: str, direct: str) -> None:
        self.url = url
        self._direct = direct  # a way that no fault blocks

    @contextlib.contextmanager
    def fault(self, kind: str) -> Iterator[None]:
        with contextlib.closing(sqlite3.connect(self._direct, isolation_level=None, timeout=60)) as lite:
            lite.execute("BEGIN IMMEDIATE")
            yield
            lite.execute("ROLLBACK")


class PostgresGround(Ground):
    """A server behind a proxy that falls silent, or lets nobody in."""

    kinds = ("silent", "locked", "gone")

    def __init__(self, url: str, direct: str, proxy: FaultProxy) -> None:
        super().__init__(url, direct)
        self._proxy = proxy

    @contextlib.contextmanager
    def fault(self, kind: str) -> Iterator[None]:
        if kind == "locked":
            with psycopg.connect(self._direct) as stranger:
                stranger.execute("LOCK TABLE fencerow.jobs IN ACCESS EXCLUSIVE MODE")
                yield
                stranger.rollback()
            return
        if kind == "silent":
            self._proxy.black_hole()
        else:
            self._proxy.refuse_new()
            self._proxy.cut_all()
        yield
        self._proxy.heal()


@contextlib.contextmanager
def ground(engine: str) -> Iterator[Ground]:
    if engine == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield Ground(f"sqlite:///{folder}/jobs.db", f"{folder}/jobs.db")
        return
    with PostgresServer(fast=True, tcp=True) as server, FaultProxy(server.port) as proxy:
        server.create_role_and_schema(role="app", database="campaign")
        direct = server.conninfo("campaign", "app", tcp=True)
        with App(direct, config=Config.load({}, url=direct)) as app:
            store.migrate(app.engine)
        yield PostgresGround(direct.replace(f":{server.port}/", f":{proxy.port}/"), direct, proxy)


async def play(found: Ground, count: int, seed: int) -> dict[str, Any]:
    """All rounds on one database; what was seen."""
    draw, signs = random.Random(seed), Signs()
    async with App(found.url, config=Config.load({}, url=found.url)) as app:

        @app.job(queue="bot")
        async def think(reply: ReplyTo, text: str) -> str:
            return f"{reply.interaction_id} {text}"

        discord = Discord(app, public_key=signs.public)
        discord.command("ask")(lambda one: think.call(one.reply, "hello"))
        await app.asubmit(think.call(ReplyTo("1", "1", "warm"), "up"))
        seen: list[tuple[Interaction, str, float, str]] = []
        lags: list[float] = []
        lagging = asyncio.create_task(lag(lags))
        async with serving_on(Server(discord, WebSettings())) as served, calling(served.port) as caller:
            while len(seen) < count:
                kind = draw.choice(("none", *found.kinds))
                wanted = min(AT_ONCE, count - len(seen))
                seen += await round_of(found, kind, wanted, draw, signs, caller)
            async with asyncio.timeout(120):
                while discord._room.taken:
                    await asyncio.sleep(0.1)
            jobs = {each.id for each in await asyncio.to_thread(listed, app)}
        lagging.cancel()
        # How long this process did not get its turn, at worst: it plays Discord, the endpoint and the network between.
        return told(seen, jobs) | {"turns_late_s": round(max(lags), 3)}


async def lag(seen: list[float]) -> None:
    """How much later than wanted this event loop turns."""
    while True:
        began = time.monotonic()
        await asyncio.sleep(0.05)
        seen.append(time.monotonic() - began - 0.05)


def listed(app: App) -> list[Any]:
    """All jobs of interactions."""
    until = time.monotonic() + 60
    while True:
        try:
            return app.client.list_jobs(name="think", limit=10_000)
        except FencerowError:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)


@contextlib.asynccontextmanager
async def calling(port: int) -> AsyncIterator[httpx.AsyncClient]:
    limits = httpx.Limits(max_connections=2 * AT_ONCE)
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}", timeout=60, limits=limits, trust_env=False
    ) as made:
        yield made


async def round_of(
    found: Ground, kind: str, count: int, draw: random.Random, signs: Signs, caller: httpx.AsyncClient
) -> list[tuple[Interaction, str, float, str]]:
    """Some at once, and a fault that begins before or after the first of them and lasts for a drawn time."""

    async def one() -> tuple[Interaction, str, float, str]:
        await asyncio.sleep(draw.uniform(0.0, 0.2))
        interaction = signs.new()
        headers, body = signs.sent(interaction)
        began = time.monotonic()
        answer = await caller.post("/", content=body, headers=headers)
        took_s = time.monotonic() - began
        said = KIND[answer.json()["type"]] if answer.status_code == 200 else str(answer.status_code)
        return interaction_of(body), said, took_s, kind

    # In a thread: to take a lock waits, and nothing but the database may be slow here.
    fault = asyncio.create_task(
        asyncio.to_thread(strike, found, kind, draw.uniform(0.0, 0.2), draw.uniform(0.3, 4.0))
    )
    answered = await asyncio.gather(*(one() for _ in range(count)))
    await fault
    return answered


def strike(found: Ground, kind: str, after_s: float, lasts_s: float) -> None:
    if kind == "none":
        return
    time.sleep(after_s)
    with found.fault(kind):
        time.sleep(lasts_s)


def told(seen: list[tuple[Interaction, str, float, str]], jobs: set[str]) -> dict[str, Any]:
    """What was seen, as numbers; `wrong` must be empty."""
    own = {each.job_id for each, *_ in seen}
    deferred = {each.job_id for each, said, *_ in seen if said == "deferred"}
    busy = {each.job_id for each, said, *_ in seen if said == "busy"}
    strangers = len(jobs - own) - 1  # one was submitted before
    times = sorted(took_s for _, _, took_s, _ in seen)
    wrong = {
        "late": sum(took_s > LIMIT_S for took_s in times),
        "neither_deferred_nor_busy": len(seen) - len(deferred) - len(busy),
        "deferred_without_a_job": len(deferred - jobs),
        "jobs_of_nobody": strangers,
    }
    return {
        "interactions": len(seen),
        "by_fault": {
            kind: dict(Counter(said for _, said, _, of in seen if of == kind))
            for kind in sorted({of for *_, of in seen})
        },
        "deferred": len(deferred),
        "busy": len(busy),
        "busy_whose_job_was_stored_later": len(busy & jobs),
        "answer_s": {"median": round(times[len(times) // 2], 3), "worst": round(times[-1], 3)},
        "wrong": {name: number for name, number in wrong.items() if number},
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.web.discord.campaign", description=__doc__)
    parser.add_argument("--engine", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument("--interactions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--evidence", type=Path, metavar="FILE")
    wanted = parser.parse_args()
    engines = ("sqlite", "postgres") if wanted.engine == "both" else (wanted.engine,)
    found: dict[str, Any] = {"seed": wanted.seed, "limit_s": LIMIT_S}
    for engine in engines:
        with ground(engine) as made:
            found[engine] = asyncio.run(play(made, wanted.interactions, wanted.seed))
    text = json.dumps(found, indent=1) + "\n"
    sys.stdout.write(text)
    if wanted.evidence is not None:
        wanted.evidence.write_text(text)
    return 1 if any(found[engine]["wrong"] for engine in engines) else 0


if __name__ == "__main__":
    sys.exit(main())
