"""What grows dearer with what is stored: each operation on a large database beside the same on a small one.

    python bench/growth.py [postgres|sqlite] [--queued N] [--finished N] [--keys N] [--limited N] [--schedules N]
                           [--flows N] [--churn N] [--rounds N] [--folder DIR] [--save FILE]

Both databases hold of everything: queued jobs, finished ones, exclusive keys of which one job has the turn and another
waits, jobs that wait for one limit, schedules, flows. The small one has so little of each as SMALL says, the large one
as much as was asked for; all of the goal is `--queued 5000000 --finished 20000000 --keys 100000 --schedules 10000`,
which wants 20 GB and half an hour. The operations take turns on the two, in transactions that are rolled back, so that
each meets the same tables. On PostgreSQL they are measured again after so many jobs were claimed and ended there
(`--churn`) while somebody holds a snapshot from before it. A claim begins behind its mark, as a worker's does; that
of a sweep begins with the lane.

Told is the best tenth of each side, in microseconds, and the ratio: on SQLite the time of the thread on a processor, on
PostgreSQL the time by the clock. What else the machine does can only add to it.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from fencerow import App, Client, Config
from fencerow.bench import table
from fencerow.bench.evidence import keep
from fencerow.bench.figure import percentile
from fencerow.bench.place import SETTINGS, AnyEngine, with_bench
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import Claimed, NewJob, Template
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Operation
from fencerow.limits import Limit
from fencerow.retention.purging import purge_by_age
from fencerow.schedules import ticking
from fencerow.schedules.definition import Definition, Overlap
from fencerow.schedules.definitions import RowKind, WantedRow
from fencerow.schedules.reconciling import reconcile
from fencerow.testing.postgres import PostgresServer
from fencerow.turns import handing

QUEUE, KEYED = "bench", "keyed"
MANY, CHUNK = 100, 5_000
UNDISTURBED = 0.1
LEASE_S, PERIOD_S = 36_000.0, 86_400.0
PLAIN, OF_KEYS = Template(queue=QUEUE, name="noop"), Template(queue=KEYED, name="noop")


@dataclass(frozen=True)
class Stored:
    """How much of each a database holds."""

    queued: int = 1_000
    finished: int = 1_000
    keys: int = 100
    limited: int = 100
    schedules: int = 10
    flows: int = 10


SMALL = Stored()
SOME = Stored(queued=100_000, finished=200_000, keys=5_000, limited=5_000, schedules=1_000, flows=200)


class Side:
    """One database, filled, with a worker that is registered there."""

    def __init__(self, url: str, holds: Stored) -> None:
        self.holds, self.holder = holds, new_id()
        self.mark = store.Mark(0)  # behind which a worker looks, but for its sweeps
        self.app = App(config=Config(url=url, pool_max=10))
        self.app.migrate()
        engine = self.app.engine
        self.engine: AnyEngine = with_bench(engine)  # type: ignore[arg-type]
        self.clock = time.perf_counter if isinstance(engine, PostgresEngine) else time.thread_time
        engine.run(
            store.register(holder=self.holder, name="bench", host="", pid=0, info="{}", lease_s=LEASE_S)
        )
        self._fill()

    def _fill(self) -> None:
        holds, engine = self.holds, self.engine
        table.fill(engine, holds.queued)
        table.fill_finished(engine, holds.finished)
        Client(engine).limits.define(Limit("narrow", at_once=1))
        self._submitted(
            NewJob(new_id(), "{}", 2, OF_KEYS, f"k{at}") for at in range(holds.keys) for _ in (1, 2)
        )
        self._submitted(NewJob(new_id(), "{}", 2, OF_KEYS, None, ("narrow",)) for _ in range(holds.limited))
        while engine.run(handing.hand_over()).queued:
            pass
        work = NewJob("", "{}", 2, PLAIN)
        rules = Definition(spec={"interval_s": PERIOD_S, "spread": False}, work=work, overlap=Overlap.SKIP)
        wanted = [WantedRow(f"s{at:06}", "", RowKind.SINGLE, rules) for at in range(holds.schedules)]
        engine.run(reconcile(wanted, owner="bench", own=["noop"], running=[], actor="bench"))
        self._flows()
        engine.run(table.vacuum())

    def _submitted(self, jobs: Iterator[NewJob]) -> None:
        wanted = list(jobs)
        for first in range(0, len(wanted), CHUNK):
            self.engine.run(store.submit_gated(wanted[first : first + CHUNK]))

    def _flows(self) -> None:
        @self.app.job(name="part", queue="flows")
        async def part() -> None: ...

        for at in range(self.holds.flows):
            flow = self.app.flow(f"flow {at}")
            first = flow.add("first", part.call())
            flow.add("last", part.call(), needs=[first])
            flow.submit()

    def claim(self, queue: str, count: int, mark: store.Mark | None = None) -> Operation[list[Claimed]]:
        marks = [mark or store.Mark(0)]
        return store.claim(queue, marks, holder=self.holder, names=["noop"], limit=count, margin_s=60.0)

    def end(self, claimed: Sequence[Claimed]) -> Operation[Any]:
        ends = [store.Success(job.id, job.attempt, "1") for job in claimed]
        return store.succeed(ends, holder=self.holder)


class TakenBack(Exception):
    """Not an error: it rolls back what was measured."""


# Given a side and how an operation is run in the transaction: what comes before, and what is measured.
Measured = Callable[[Side, Callable[[Operation[Any]], Any]], Operation[Any]]


def jobs(count: int) -> list[NewJob]:
    return [NewJob(new_id(), "{}", 2, PLAIN) for _ in range(count)]


def turn(side: Side, run: Callable[[Operation[Any]], Any]) -> Operation[Any]:
    """The end of one job of a key, of which another waits; then the hand-over, which is measured."""
    run(side.end(run(side.claim(KEYED, 1))))
    return handing.hand_over()


OPERATIONS: dict[str, Measured] = {
    "submit of 1": lambda _side, _run: store.submit(jobs(1)),
    f"submit of {MANY}": lambda _side, _run: store.submit(jobs(MANY)),
    "claim of 1": lambda side, _run: side.claim(QUEUE, 1, side.mark),
    "claim of 1 by a sweep": lambda side, _run: side.claim(QUEUE, 1),
    f"claim of {MANY}": lambda side, _run: side.claim(QUEUE, MANY, side.mark),
    f"end of {MANY}": lambda side, run: side.end(run(side.claim(QUEUE, MANY, side.mark))),
    "hand-over of a turn": turn,
    "schedules, none due": lambda _side, _run: ticking.tick(),
    "next fire of all": lambda _side, _run: ticking.next_fire(),
    f"purge of {MANY}": lambda _side, _run: purge_by_age(State.SUCCEEDED, age_s=0.0, limit=MANY),
}


def took_us(side: Side, measured: Measured) -> float:
    took = 0.0
    try:
        with side.engine.session() as session:
            operation = measured(side, session.run)
            began = side.clock()
            session.run(operation)
            took = side.clock() - began
            raise TakenBack
    except TakenBack:
        return took * 1e6


def compared(small: Side, large: Side, rounds: int, when: str) -> list[dict[str, Any]]:
    """Each operation on both in turns."""
    found = []
    for name, measured in OPERATIONS.items():
        took: tuple[list[float], list[float]] = ([], [])
        for _ in range(rounds):
            for side, times in zip((small, large), took, strict=True):
                times.append(took_us(side, measured))
        few, many = (percentile(times, UNDISTURBED) for times in took)
        found.append(
            {"operation": name, "when": when, "small_us": round(few, 1), "large_us": round(many, 1),
             "ratio": round(many / few, 2)}
        )  # fmt: skip
        print(f"{when:24}{name:24}{few:12,.0f} us{many:12,.0f} us{many / few:8.2f}", flush=True)
    return found


def churned(large: PostgresEngine, side: Side, count: int) -> None:
    """So many jobs are claimed and ended, and as many submitted."""
    for _ in range(count // MANY):
        large.run(store.submit(jobs(MANY)))
        claimed: list[Claimed] = large.run(side.claim(QUEUE, MANY, side.mark))
        side.mark = store.Mark(0, claimed[-1].run_at_us, claimed[-1].id)
        large.run(side.end(claimed))


def measured_on(
    kind: str, urls: Iterator[str], holds: Stored, asked: argparse.Namespace
) -> list[dict[str, Any]]:
    with ExitStack() as stack:
        small, large = (Side(next(urls), each) for each in (SMALL, holds))
        for side in (small, large):
            stack.callback(side.app.close)
        print(f"{kind}: {holds}", flush=True)
        found = compared(small, large, asked.rounds, "at rest")
        if isinstance(large.engine, PostgresEngine) and asked.churn:
            held = stack.enter_context(psycopg.connect(large.engine.conninfo, autocommit=True))
            held.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            held.execute("SELECT 1")
            churned(large.engine, large, asked.churn)
            found += compared(small, large, asked.rounds, f"old snapshot, {asked.churn:,}")
    return found


@contextmanager
def places(kind: str, folder: Path | None) -> Iterator[Iterator[str]]:
    """URLs of two databases on one disk."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(dir=folder) as made:
            yield (f"sqlite:///{made}/{name}.db" for name in ("small", "large"))
        return
    with PostgresServer(fast=False, settings=SETTINGS, parent=folder, deadline_s=600) as server:
        yield (server.create_role_and_schema(role="app", database=name) for name in ("small", "large"))


def main() -> None:
    parser = argparse.ArgumentParser(description="What grows dearer with what is stored?")
    parser.add_argument("engines", nargs="*", default=("postgres", "sqlite"))
    for name, count in vars(SOME).items():
        parser.add_argument(f"--{name}", type=int, default=count)
    parser.add_argument("--churn", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--save", type=Path)
    asked = parser.parse_args()
    holds = Stored(**{name: getattr(asked, name) for name in vars(SOME)})
    found: dict[str, Any] = {}
    print(f"load {os.getloadavg()[0]:.0f}", flush=True)
    for kind in asked.engines:
        with places(kind, asked.folder) as urls:
            found[kind] = measured_on(kind, urls, holds, asked)
    keep(asked.save, {"small": vars(SMALL), "large": vars(holds), "operations": found})


if __name__ == "__main__":
    main()
