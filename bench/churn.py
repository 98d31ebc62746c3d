"""What grows dearer while jobs come and go for an hour under one old snapshot, on PostgreSQL.

    python bench/churn.py [--minutes N] [--every N] [--rate N] [--rounds N] [--save FILE]

A real worker drains a steady stream of jobs: of twenty one has an exclusive key and one a limit, and ten schedules fire
every five seconds. All the while somebody holds a REPEATABLE READ snapshot from before. Every few minutes the stream
pauses until all of it has ended, and the operations of `growth.py` take turns on this database and on a small one at
rest on the same server, in transactions that are rolled back. At the end the snapshot is closed, VACUUM runs, and they
are measured once more.

Told is the best tenth of the time of a processor that the server's backend used, in microseconds; its ratio to the
small database, as a multiple of what it was before the snapshot; and the dead rows by then. A hand-over takes arrivals
from the first on, as a sweep does: a worker's looks begin behind their mark.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
from growth import MANY, OPERATIONS, UNDISTURBED, Measured, jobs, server_us
from growth_side import QUEUE, Side, Stored

from fencerow import App
from fencerow.bench.evidence import keep
from fencerow.bench.figure import percentile
from fencerow.bench.place import SETTINGS
from fencerow.core.model.job import NewJob, Template
from fencerow.core.store import store
from fencerow.db.run import Operation
from fencerow.limits import Limit
from fencerow.schedules.definition import Definition, Overlap
from fencerow.schedules.definitions import RowKind, WantedRow
from fencerow.schedules.reconciling import reconcile
from fencerow.testing.postgres import PostgresServer

HOLDS = Stored(queued=0, finished=20_000)
BURST_S, BACKLOG_MAX, KEYS, SCHEDULES, PERIOD_S = 0.1, 2_000, 50, 10, 5.0
DEAD = "SELECT relname, n_dead_tup FROM pg_stat_user_tables WHERE n_dead_tup > 100 ORDER BY 1"


def claim(count: int, *, sweep: bool = False) -> Measured:
    def measured(side: Side, run: Any) -> Operation[Any]:
        # Behind all that was submitted before, as the mark of a worker is that has claimed all of it.
        mark = store.Mark(0, 0 if sweep else time.time_ns() // 1_000)
        run(store.submit(jobs(MANY)))
        return side.claim(QUEUE, count, mark)

    return measured


MEASURED: dict[str, Measured] = {
    **OPERATIONS,
    "claim of 1": claim(1),
    "claim of 1 by a sweep": claim(1, sweep=True),
    f"claim of {MANY}": claim(MANY),
    f"end of {MANY}": lambda side, run: side.end(run(claim(MANY)(side, run))),
}


def compared(small: Side, large: Side, rounds: int) -> dict[str, tuple[float, float]]:
    """Of each operation the best tenth on both sides, which take turns."""
    found = {}
    for name, measured in MEASURED.items():
        pairs = [[server_us(side, measured) for side in (small, large)] for _ in range(rounds + 2)]
        few, many = (percentile(times, UNDISTURBED) for times in zip(*pairs[2:], strict=True))
        found[name] = (few, many)
    return found


class Stream:
    """What is submitted to a worker at a steady rate."""

    def __init__(self, url: str, rate: int) -> None:
        self.app = App(url, actor="bench", limits=(Limit("churn", at_once=20),))
        self.burst = int(rate * BURST_S)
        self.submitted, self.ended = 0, Counter[str]()

        self.plain = self.declared("noop").call
        self.one = self.declared("one", exclusive=lambda number: f"churn {number % KEYS}").call
        self.few = self.declared("few", limits=("churn",)).call
        self.declared("tick")
        work = NewJob("", "{}", 2, Template(queue=QUEUE, name="tick"))
        rules = Definition(spec={"interval_s": PERIOD_S, "spread": False}, work=work, overlap=Overlap.SKIP)
        wanted = [WantedRow(f"churn{at}", "", RowKind.SINGLE, rules) for at in range(SCHEDULES)]
        self.app.engine.run(reconcile(wanted, owner="churn", own=["tick"], running=[], actor="bench"))
        self.app.declare_limits()

    def declared(self, name: str, **says: Any) -> Any:
        async def ends(number: int = 0) -> None:  # noqa: ARG001 - a key is made of it
            self.ended[name] += 1

        return self.app.job(name=name, queue=QUEUE, **says)(ends)

    @property
    def left(self) -> int:
        return self.submitted - self.ended.total() + self.ended["tick"]

    async def flow(self, until: float) -> None:
        """So many jobs in each tenth of a second, but for while too many wait; then until all have ended."""
        while time.monotonic() < until:
            began = time.monotonic()
            if self.left < BACKLOG_MAX:
                keyed = [self.one(self.submitted), self.one(self.submitted + 1)]
                plain = [self.plain() for _ in range(self.burst - 4)]
                await self.app.asubmit_many([*plain, *keyed, self.few(), self.few()])
                self.submitted += self.burst
            await asyncio.sleep(max(0.0, BURST_S - (time.monotonic() - began)))
        while self.left > 0:  # noqa: ASYNC110 - the handlers count
            await asyncio.sleep(0.05)
        await asyncio.sleep(1)  # their ends are written


async def played(urls: list[str], asked: argparse.Namespace) -> list[dict[str, Any]]:
    small, large = [await asyncio.to_thread(Side, url, HOLDS) for url in urls]
    stream, rows = await asyncio.to_thread(Stream, urls[1], asked.rate), list[dict[str, Any]]()
    first: dict[str, tuple[float, float]] = {}
    with (
        psycopg.connect(large.engine.conninfo, autocommit=True) as held,
        psycopg.connect(large.engine.conninfo, autocommit=True) as look,
    ):

        async def measure(when: str) -> None:
            found = await asyncio.to_thread(compared, small, large, asked.rounds)
            first.update({} if first else found)
            for name, (few, many) in found.items():
                grown = round(many / few / (first[name][1] / first[name][0]), 2)
                us = {"small_us": round(few), "large_us": round(many)}
                rows.append({"when": when, "operation": name, **us, "grown": grown})
                print(f"{when:32}{name:24}{few:10,.0f} us{many:12,.0f} us{grown:8.2f}", flush=True)
            dead = dict(look.execute(DEAD).fetchall())
            rows.append({"when": when, "jobs": stream.submitted, "ended": dict(stream.ended), "dead": dead})
            print(f"{when:32}{rows[-1]}, load {os.getloadavg()[0]:.0f}", flush=True)

        async with stream.app.worker({QUEUE: 50}, ends_process=False):
            began = time.monotonic()
            await stream.flow(began + 10)  # what is loaded and planned once
            await measure("before")
            held.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            held.execute("SELECT 1")
            over = time.monotonic() + asked.minutes * 60
            while (now := time.monotonic()) < over:
                await stream.flow(min(over, now + asked.every * 60))
                await measure(f"snapshot, {(time.monotonic() - began) / 60:.0f} minutes")
            held.execute("ROLLBACK")
            await asyncio.to_thread(look.execute, "VACUUM (ANALYZE)")
            await measure("closed, and vacuumed")
    for side in (small, large):
        await asyncio.to_thread(side.app.close)
    await stream.app.aclose()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=50)
    parser.add_argument("--every", type=float, default=6)
    parser.add_argument("--rate", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--save", type=Path)
    asked = parser.parse_args()
    with PostgresServer(fast=False, settings=SETTINGS, deadline_s=600) as server:
        urls = [server.create_role_and_schema(role="app", database=name) for name in ("small", "large")]
        found = asyncio.run(played(urls, asked))
    keep(
        asked.save, {"rate": asked.rate, "minutes": asked.minutes, "rounds": asked.rounds, "measured": found}
    )


if __name__ == "__main__":
    main()
