"""A chain of ten and a fan-out of a thousand, beside DBOS doing the same on the same PostgreSQL.

    python bench/flows_dbos.py PYTHON [rounds]

PYTHON: an interpreter that has the package `dbos`; it runs this file again as a process of its own. Each round does the
fan-out and the chain here and there, in turns. Here a flow: one job, a thousand that need it, one that needs them all;
and ten jobs, each needing the one before. There a workflow that enqueues a thousand workflows and waits for them; and
one that starts ten, each after the one before has ended. Here are 20 slots; there are as many
as PEER_SLOTS says, or no limit. The whole is timed by who asks for it.
Told is the median of each, and the median of each round's ratio: less than 1 is less time here.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

ROUNDS = 5
PARTS, LINKS, SLOTS = int(os.environ.get("PARTS", "1000")), 10, 20
THERE = int(os.environ.get("PEER_SLOTS", "0")) or None  # of the queue there; none is usual
POLL_S = 0.05  # of the queue there: 1.0 is usual, and slower
WAIT_S = 600.0
WAYS = ("fan-out", "chain")


class Peer:
    """The other process: it is told what to do, and says how many seconds that took."""

    def __init__(self, python: str, url: str) -> None:
        self._process = subprocess.Popen(
            [python, __file__, "--peer", url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.version = self._line()

    def run(self, way: str) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{way}\n")
        self._process.stdin.flush()
        return float(self._line())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("the peer ended without an answer")
        return str(json.loads(line))


def peer(url: str) -> None:
    """What the other process does: DBOS, told by lines."""
    from importlib.metadata import version

    from dbos import DBOS  # type: ignore[import-not-found]

    config = {"name": "bench", "system_database_url": url, "log_level": "ERROR", "run_admin_server": False}
    DBOS(config=config)

    @DBOS.workflow()
    def part(number: int) -> int:
        return number

    @DBOS.workflow()
    def fan_out() -> int:
        handles = [DBOS.enqueue_workflow("parts", part, number) for number in range(PARTS)]
        return sum(each.get_result() for each in handles)

    @DBOS.workflow()
    def chain() -> int:
        return sum(DBOS.start_workflow(part, number).get_result() for number in range(LINKS))

    DBOS.launch()
    DBOS.register_queue("parts", worker_concurrency=THERE, polling_interval_sec=POLL_S)
    chain()  # what is loaded late is paid for
    print(json.dumps(version("dbos")), flush=True)
    for line in sys.stdin:
        began = time.perf_counter()
        (fan_out if line.strip() == WAYS[0] else chain)()
        print(json.dumps(time.perf_counter() - began), flush=True)
    DBOS.destroy()


class Ours:
    """An app whose job does nothing, on a database of its own on the same server."""

    def __init__(self, config: Any) -> None:
        from fencerow import App

        self.app = App(config=config)
        self.app.migrate()

        @self.app.job
        async def part(number: int) -> int:
            return number

        self._part = part

    async def run(self, way: str) -> float:
        began = time.perf_counter()
        flow = self.app.flow(way)
        if way == WAYS[0]:
            first = flow.add("first", self._part.call(0))
            parts = [flow.add(f"part {at}", self._part.call(at), needs=[first]) for at in range(PARTS)]
            flow.add("join", self._part.call(0), needs=parts)
        else:
            flow.chain(*((f"link {at}", self._part.call(at)) for at in range(LINKS)))
        await (await flow.asubmit()).await_ended(WAIT_S)
        return time.perf_counter() - began


async def measured(config: Any, other: Peer, rounds: int) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    ours = Ours(config)
    async with ours.app, ours.app.worker(slots=SLOTS):
        await ours.run("chain")
        for _ in range(rounds):
            for way in WAYS:
                found[way].append((await ours.run(way), await asyncio.to_thread(other.run, way)))
                print(f"{way}, a round: {found[way][-1][0]:.3f} s and {found[way][-1][1]:.3f} s", flush=True)
    return found


def told(found: dict[str, list[tuple[float, float]]]) -> Iterator[str]:
    for way, pairs in found.items():
        here, there = (statistics.median(each[at] for each in pairs) for at in (0, 1))
        ratio = statistics.median(mine / other for mine, other in pairs)
        yield f"{way}: {here:.3f} s here, {there:.3f} s with DBOS, {ratio:.2f} x"


def main() -> None:
    if sys.argv[1] == "--peer":
        peer(sys.argv[2])
        return
    from fencerow.bench.place import SETTINGS
    from fencerow.config import Config
    from fencerow.testing.postgres import PostgresServer

    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else ROUNDS
    with PostgresServer(fast=False, settings=SETTINGS) as server:
        config = Config(url=server.create_role_and_schema(), pool_max=10)
        other = Peer(sys.argv[1], server.create_database("dbos"))
        print(
            f"DBOS {other.version}, {rounds} rounds, its queue polls every {POLL_S:g} s, slots {THERE}",
            flush=True,
        )
        try:
            for line in told(asyncio.run(measured(config, other, rounds))):
                print(line, flush=True)
        finally:
            other.close()


if __name__ == "__main__":
    main()
