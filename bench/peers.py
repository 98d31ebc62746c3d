"""Our half of the comparison with other job systems in `docs/speed.md`, by the rules that hold for all of them.

    python bench/peers.py URL [rounds] [jobs] [uvloop]

URL leads to a scratch database that may be emptied (a schema `fencerow`, or a SQLite file). Each round prints one line
of JSON. `uvloop` runs all in that event loop, as some of the others are, if it is installed. Everything is done with
the defaults, each role in a process of its own, whose payload is one number:

- *single*: an event loop submits one job after the other.
- *bulk*: the jobs of the drain, 1,000 a call.
- *drain*: one worker process works them off. The clock runs from the first handler's start until the database itself
  says that none is left. The processor time of the worker begins with its interpreter.
- *late*: an idle worker gets 310 jobs, one each 8 to 16 ms, and subtracts the time at which the call of its submit
  began. The first ten are dropped.

So that a machine whose speed drifts does no harm, take turns with the others: one round of each, and again.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg

from fencerow import App
from fencerow.bench.figure import percentile
from fencerow.bench.server import cpu_s
from fencerow.config import Config
from fencerow.core.store import store
from fencerow.core.store.connect import open_engine

SINGLES = 1000
LATE = 310
WARM = 10
CHUNK = 1000
PAUSE_S = (0.008, 0.016)
SETTLE_S = 3.0
SLOTS = 100
DEFAULTS = (1, 20_000)  # rounds, and jobs of a drain
LOOP = [each for each in sys.argv[-1:] if each == "uvloop"]


class Role:
    """The process of one role: an app with one job, which does nothing but count and look at the clock."""

    def __init__(self, url: str, count: int) -> None:
        self.app, self.count = App(url), count
        self._first_ns = 0
        self._late_ns: list[int] = []
        self._seen = 0
        self._all_seen = asyncio.Event()

        @self.app.job(name="noop")
        async def noop(sent_ns: int) -> None:
            now_ns = time.monotonic_ns()
            self._seen += 1
            self._first_ns = self._first_ns or now_ns
            if sent_ns:
                self._late_ns.append(now_ns - sent_ns)
            if self._seen == self.count:
                self._all_seen.set()

        self.noop = noop

    async def single(self) -> None:
        """One after the other; the first is not counted."""
        async with self.app:
            await self.noop.asubmit(0)
            began = time.perf_counter()
            for _ in range(self.count):
                await self.noop.asubmit(0)
            said(jobs_s=self.count / (time.perf_counter() - began))

    async def bulk(self) -> None:
        """As many a call as the others take."""
        async with self.app:
            began = time.perf_counter()
            for start in range(0, self.count, CHUNK):
                chunk = range(start, min(start + CHUNK, self.count))
                await self.app.asubmit_many([self.noop.call(0) for _ in chunk])
            said(jobs_s=self.count / (time.perf_counter() - began))

    async def late(self) -> None:
        """Each with the time at which its call began."""
        async with self.app:
            for _ in range(self.count):
                await asyncio.sleep(random.uniform(*PAUSE_S))
                await self.noop.asubmit(time.monotonic_ns())

    async def worker(self) -> None:
        """Say when all have begun, then go on until standard input ends."""
        async with self.app as app, app.worker(slots=SLOTS):
            await self._all_seen.wait()
            said(first_ns=self._first_ns, late_ns=self._late_ns)
            await asyncio.to_thread(sys.stdin.read)
        said(cpu_s=time.process_time())


ROLES: dict[str, Callable[[Role], Awaitable[None]]] = {
    "single": Role.single, "bulk": Role.bulk, "late": Role.late, "worker": Role.worker,
}  # fmt: skip


def said(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


def process(role: str, url: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, __file__, url, role, str(count), *LOOP],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def played(role: str, url: str, count: int) -> dict[str, Any]:
    """What a role said in the end, if anything."""
    out, _ = process(role, url, count).communicate(timeout=120)
    found: dict[str, Any] = json.loads(out) if out else {}
    return found


class Place:
    """The database of the rounds."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.server_pid: int | None = None
        self._is_file = url.startswith("sqlite:")
        self._file = Path(url.removeprefix("sqlite:///"))
        if not self._is_file:
            with psycopg.connect(url) as connection:
                status = Path(f"/proc/{connection.info.backend_pid}/stat").read_text()
            self.server_pid = int(status.rsplit(")", 1)[1].split()[1])

    def empty(self) -> None:
        """As a first migration leaves it."""
        if self._is_file:
            for each in self._file.parent.glob(f"{self._file.name}*"):
                if each.is_file():
                    each.unlink()
        else:
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute("DROP SCHEMA IF EXISTS fencerow CASCADE")
        with closing(open_engine(Config(url=self.url))) as engine:
            store.migrate(engine, actor="bench")

    def settle(self) -> None:
        """What was loaded is vacuumed before it is drained."""
        if not self._is_file:
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute("VACUUM (ANALYZE)")

    def left(self) -> int:
        """How many jobs have not ended, by the database."""
        if self._is_file:
            with closing(sqlite3.connect(self._file)) as file:
                (count,) = file.execute("SELECT count(*) FROM fencerow_jobs").fetchone()
        else:
            with psycopg.connect(self.url) as connection:
                ((count,),) = connection.execute("SELECT count(*) FROM fencerow.jobs").fetchall()
        return int(count)


def drained(place: Place, jobs: int) -> dict[str, float]:
    server = cpu_s(place.server_pid) or 0.0
    with process("worker", place.url, jobs) as worker:
        assert worker.stdout is not None and worker.stdin is not None
        told = json.loads(worker.stdout.readline())
        while place.left():
            time.sleep(0.01)
        took_s = (time.monotonic_ns() - told["first_ns"]) / 1e9
        server = (cpu_s(place.server_pid) or 0.0) - server
        worker.stdin.close()
        own = json.loads(worker.stdout.readline())["cpu_s"]
    return {
        "drain_s": jobs / took_s,
        "worker_cpu_us_job": own / jobs * 1e6,
        "srv_cpu_us_job": server / jobs * 1e6,
    }


def late(place: Place) -> dict[str, float]:
    with process("worker", place.url, LATE) as worker:
        assert worker.stdout is not None and worker.stdin is not None
        time.sleep(SETTLE_S)
        played("late", place.url, LATE)
        ms = [each / 1e6 for each in json.loads(worker.stdout.readline())["late_ns"][WARM:]]
        worker.communicate()
    return {f"lat_p{share * 100:g}_ms": percentile(ms, share) for share in (0.5, 0.95, 0.99)}


def a_round(place: Place, jobs: int) -> dict[str, float]:
    place.empty()
    found = {"single_s": played("single", place.url, SINGLES)["jobs_s"]}
    place.empty()
    found["bulk_s"] = played("bulk", place.url, jobs)["jobs_s"]
    place.settle()
    found |= drained(place, jobs)
    place.empty()
    return found | late(place)


def main() -> None:
    url, *more = sys.argv[1:]
    if more and more[0] in ROLES:
        run = importlib.import_module("uvloop").run if LOOP else asyncio.run
        run(_in_role(more[0], url, int(more[1])))
        return
    more = [each for each in more if each not in LOOP]
    rounds, jobs = [*(int(each) for each in more), *DEFAULTS[len(more) :]]
    place = Place(url)
    for _ in range(rounds):
        found = a_round(place, jobs)
        said(
            peer="fencerow",
            on=url.partition(":")[0],
            jobs=jobs,
            **{name: round(each, 2) for name, each in found.items()},
        )


async def _in_role(name: str, url: str, count: int) -> None:
    await ROLES[name](Role(url, count))


if __name__ == "__main__":
    main()
