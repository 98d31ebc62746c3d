"""What a process of the bench does: run jobs as a worker, or answer announcements with bare statements."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg

from fencerow.app import App
from fencerow.bench.place import BenchDatabase
from fencerow.config import Config
from fencerow.core.model.ids import new_id
from fencerow.core.telemetry import Fact
from fencerow.db.postgres import PostgresEngine

LOOK_S = 0.002
CHANNEL = "fencerow_bench"


def main() -> None:
    asked = json.loads(sys.stdin.readline())
    config = Config(**asked["config"], slots=asked.get("slots", 100), pool_max=10)
    if asked["role"] == "bare":
        bare(config, asked["count"], asked["ear"])
    else:
        asyncio.run({"drain": drain, "serve": serve}[asked["role"]](config))


def say(**answer: Any) -> None:
    print(json.dumps(answer), flush=True)  # noqa: T201 (to the parent)


async def questions() -> AsyncIterator[dict[str, Any]]:
    """What the parent asks, until it closes the line."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        yield json.loads(line)


# --- draining ------------------------------------------------------------------------------------


async def drain(config: Config) -> None:
    """Run all that is due. Says when the first handler began, and when the database had confirmed the last."""
    app = App(config=config)
    seen = Drained()

    @app.job(name="noop", queue="bench")
    async def noop(t: int) -> None:  # noqa: ARG001
        if not seen.first_ns:
            seen.begin()

    app.telemetry.counters.add("succeeded", 0)
    say(ready=True)
    async for asked in questions():
        if asked.get("claims"):
            app.telemetry.listen(seen.claimed)
        worker = app.worker()
        watching = asyncio.create_task(seen.watch(app))
        await worker.run(until_idle=True)
        watching.cancel()
        say(**seen.told())
    await app.aclose()


class Drained:
    """Times of one drain, by the clock that all processes of the machine share."""

    def __init__(self) -> None:
        self.first_ns = 0
        self.last_ns = 0
        self.count = 0
        self._cpu_first = self._cpu_last = 0.0
        self._claims: list[tuple[int, float]] = []

    def begin(self) -> None:
        self.first_ns, self._cpu_first = time.monotonic_ns(), time.process_time()

    async def watch(self, app: App) -> None:
        while True:
            count = app.telemetry.counters.get("succeeded")
            if count != self.count:
                self.count, self.last_ns, self._cpu_last = count, time.monotonic_ns(), time.process_time()
            await asyncio.sleep(LOOK_S)

    def claimed(self, name: str, facts: Mapping[str, Any]) -> None:
        if name == Fact.CLAIMED:
            self._claims.append((facts["count"], facts["duration_s"]))

    def told(self) -> dict[str, Any]:
        return {
            "first_ns": self.first_ns,
            "last_ns": self.last_ns,
            "count": self.count,
            "cpu_s": self._cpu_last - self._cpu_first,
            "claims": self._claims,
        }


# --- serving -------------------------------------------------------------------------------------


async def serve(config: Config) -> None:
    """A worker that waits for jobs: tells how late they started, what idling costs, and its memory."""
    app = App(config=config)
    late_ns: list[int] = []
    release = asyncio.Event()

    @app.job(name="noop", queue="bench")
    async def noop(t: int) -> None:
        if t:
            late_ns.append(time.monotonic_ns() - t)

    @app.job(name="hold", queue="bench")
    async def hold() -> None:
        await release.wait()

    async with app.worker() as worker:
        say(ready=True)
        async for asked in questions():
            match asked["ask"]:
                case "late":
                    await _until(lambda count=asked["count"]: len(late_ns) >= count)
                    say(late_ns=late_ns)
                case "idle":
                    say(**await idle(app, asked["seconds"]))
                case "memory":
                    await _until(lambda count=asked["running"]: worker.running >= count)
                    say(resident_mib=resident_mib(), running=worker.running)
                case "release":
                    release.set()
                    await _until(lambda: worker.running == 0)
                    say(released=True)
    await app.aclose()


async def idle(app: App, seconds: float) -> dict[str, Any]:
    """CPU seconds and operations while nothing happens. The keeper's renewals are in the CPU, not in the count."""
    engine = app.engine
    count, original = 0, engine.arun

    async def counted(operation: Any) -> Any:
        nonlocal count
        count += 1
        return await original(operation)

    engine.arun = counted  # type: ignore[method-assign]
    before = time.process_time()
    await asyncio.sleep(seconds)
    spent = time.process_time() - before
    engine.arun = original  # type: ignore[method-assign]
    return {"cpu_s_per_minute": spent * 60 / seconds, "operations_per_s": count / seconds}


async def _until(ready: Any, limit_s: float = 30.0) -> None:
    deadline = time.monotonic() + limit_s
    while not ready() and time.monotonic() < deadline:  # noqa: ASYNC110 (events of several kinds)
        await asyncio.sleep(0.005)


def resident_mib() -> float | None:
    """Memory that is really used, where the system tells."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


# --- the floor -----------------------------------------------------------------------------------


def bare(config: Config, count: int, ear: str) -> None:
    """Claim at each announcement with one bare statement; tells how late each job was seen."""
    place = BenchDatabase("bare", config, "")
    late_ns: list[int] = []
    with place.engine() as engine, place.raw(engine) as raw:
        holder = new_id()
        for _ in _announcements(engine, ear):
            while len(late_ns) < count:
                more = {} if isinstance(engine, PostgresEngine) else {"now_us": time.time_ns() // 1000}
                rows = raw.run("raw_claim", queue="raw", limit=10, holder=holder, **more)
                now_ns = time.monotonic_ns()
                late_ns += [now_ns - json.loads(args)["t"] for _, args in rows]
                ids = [row[0] for row in rows]
                if not ids:
                    break
                raw.run("raw_delete", ids=ids if isinstance(engine, PostgresEngine) else json.dumps(ids))
            if len(late_ns) >= count:
                break
    say(late_ns=late_ns)


def _announcements(engine: Any, ear: str) -> Iterator[object]:
    """One item for each announcement heard; on SQLite at the socket of that path."""
    if isinstance(engine, PostgresEngine):
        with psycopg.connect(engine.conninfo, autocommit=True) as connection:
            connection.execute(f"LISTEN {CHANNEL}")
            say(ready=True)
            yield from connection.notifies()
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bound:
        bound.bind(ear)
        say(ready=True)
        while True:
            yield bound.recv(16)


if __name__ == "__main__":
    main()
