"""What grows dearer with what is stored: each operation on a large database beside the same on a small one.

    python bench/growth.py [postgres|sqlite] [--queued N] [--finished N] [--keys N] [--limited N] [--schedules N]
                           [--flows N] [--steps N] [--sleeping N] [--events N] [--churn N] [--rounds N]
                           [--folder DIR] [--save FILE]

Both databases hold of everything: queued jobs, finished ones, exclusive keys of which one job has the turn and another
waits, jobs that wait for one limit, schedules, flows, steps that jobs remember, jobs that sleep, events. The small one
has so little of each as SMALL says, the large one as much as was asked for; all of the goal is `--queued 5000000
--finished 20000000 --keys 100000 --schedules 10000`, which wants 20 GB and half an hour. The operations take turns on
the two, in transactions that are rolled back, so that each meets the same tables. On PostgreSQL they are measured again
after so many jobs were claimed and ended there (`--churn`) while somebody holds a snapshot from before it. A claim
begins behind its mark, as a worker's does; that of a sweep begins with the lane.

Told is the best tenth of each side, in microseconds of a processor, and the ratio: on SQLite of the thread, on
PostgreSQL of the server's backend.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from growth_side import (
    FLOWS,
    KEYED,
    LIMITED,
    NARROW,
    OF_KEYS,
    OF_LIMITS,
    PLAIN,
    QUEUE,
    Side,
    Stored,
    events,
)

from fencerow.bench import table
from fencerow.bench.evidence import keep
from fencerow.bench.figure import percentile
from fencerow.bench.place import SETTINGS
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import Claimed, NewJob
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.postgres_session import PostgresSession
from fencerow.db.run import Operation
from fencerow.events import sequencer
from fencerow.events.outbox import append
from fencerow.flows.storing import submit_flow
from fencerow.flows.waking import advance
from fencerow.retention.purging import purge_by_age
from fencerow.schedules import ticking
from fencerow.steps.memory import Fencing, Remembering, remember
from fencerow.steps.model import Kind
from fencerow.steps.waker import wake_due
from fencerow.testing.postgres import PostgresServer
from fencerow.turns import handing

MANY, DUE = 100, 10
UNDISTURBED = 0.1
SMALL = Stored()
SOME = Stored(100_000, 200_000, 5_000, 5_000, 1_000, 200, 20_000, 10_000, 100_000)


class TakenBack(Exception):
    """Not an error: it rolls back what was measured."""


# Given a side and how an operation is run in the transaction: what comes before, and what is measured.
Measured = Callable[[Side, Callable[[Operation[Any]], Any]], Operation[Any]]


def jobs(count: int) -> list[NewJob]:
    return [NewJob(new_id(), "{}", 2, PLAIN) for _ in range(count)]


Run = Callable[[Operation[Any]], Any]


def turn(side: Side, run: Run) -> Operation[Any]:
    """The end of one job of a key, of which another waits; then the hand-over, which is measured."""
    run(side.end(run(side.claim(KEYED, 1))))
    return handing.hand_over()


def place_under_limit(side: Side, run: Run) -> Operation[Any]:
    """The same under a limit at which all others wait."""
    run(side.end(run(side.claim(LIMITED, 1))))
    return handing.hand_over()


def told(side: Side, run: Run) -> Operation[Any]:
    """The end of the first job of a flow; then it is told to the job that waits for it, which is measured."""
    run(side.end(run(side.claim(FLOWS, 1))))
    return advance(actor=None)


def step(side: Side, run: Run) -> Operation[Any]:
    run(store.submit(jobs(1)))  # where all have ended there is one all the same
    (job,) = run(side.claim(QUEUE, 1, side.mark))
    said = Remembering(name="step", kind=Kind.STEP, seq=1, beside=False, result="1")
    return remember(Fencing(job.id, side.holder, job.attempt), said)


def fires(_side: Side, run: Run) -> Operation[Any]:
    run(table.schedules_due(DUE))
    return ticking.tick()


def placed(side: Side, run: Run) -> Operation[Any]:
    run(append(events(MANY)))
    return sequencer.sequence(side.placed)


OPERATIONS: dict[str, Measured] = {
    "submit of 1": lambda _side, _run: store.submit(jobs(1)),
    f"submit of {MANY}": lambda _side, _run: store.submit(jobs(MANY)),
    "claim of 1": lambda side, _run: side.claim(QUEUE, 1, side.mark),
    "claim of 1 by a sweep": lambda side, _run: side.claim(QUEUE, 1),
    f"claim of {MANY}": lambda side, _run: side.claim(QUEUE, MANY, side.mark),
    f"end of {MANY}": lambda side, run: side.end(run(side.claim(QUEUE, MANY, side.mark))),
    "submit with a key": lambda _side, _run: store.submit_gated([NewJob(new_id(), "{}", 2, OF_KEYS, "new")]),
    "submit under a limit": lambda _side, _run: store.submit_gated(
        [NewJob(new_id(), "{}", 2, OF_LIMITS, None, NARROW)]
    ),
    "hand-over of a turn": turn,
    "place under a limit": place_under_limit,
    "submit of a flow of 2": lambda side, _run: submit_flow(side.flow("new")._plan(), actor=None),
    "end told in a flow": told,
    "step remembered": step,
    "sleeps, none due": lambda _side, _run: wake_due(limit=MANY, actor=None),
    f"publish of {MANY}": lambda _side, _run: append(events(MANY)),
    f"places for {MANY} events": placed,
    f"fires of {DUE}": fires,
    "schedules, none due": lambda _side, _run: ticking.tick(),
    "next fire of all": lambda _side, _run: ticking.next_fire(),
    f"purge of {MANY}": lambda _side, _run: purge_by_age(State.SUCCEEDED, age_s=0.0, limit=MANY),
}


def used_s(pid: int) -> float:
    """The time of a processor that a backend has used, once it rests: what runs is counted a tick later."""
    while Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] == "R":
        pass
    return int(Path(f"/proc/{pid}/schedstat").read_text("ascii").split()[0]) / 1e9


def server_us(side: Side, measured: Measured) -> float:
    pools = side.engine._pools
    with (
        pools.connection() as connection,
        pools.watched(connection) as watched,
        connection.transaction(force_rollback=True),
    ):
        session = PostgresSession(connection, side.engine.queries, watched, prepare=True)
        pid = connection.info.backend_pid
        operation = measured(side, session.run)
        began = used_s(pid)
        session.run(operation)
        return (used_s(pid) - began) * 1e6


def took_us(side: Side, measured: Measured) -> float:
    if isinstance(side.engine, PostgresEngine):
        return server_us(side, measured)
    took = 0.0
    try:
        with side.engine.session() as session:
            operation = measured(side, session.run)
            began = time.thread_time()
            session.run(operation)
            took = time.thread_time() - began
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
