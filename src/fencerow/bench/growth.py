"""Does a claim grow dearer: with the backlog, the finished, the jobs due tomorrow, under an old snapshot."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

from fencerow.bench import table
from fencerow.bench.figure import Figure, percentile
from fencerow.bench.member import member
from fencerow.bench.place import AnyEngine, BenchDatabase
from fencerow.bench.sizes import SLOTS, Sizes
from fencerow.core.model.ids import new_id
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine

LIMIT = 100
SMALL = 1_000
TOMORROW_S = 86_400.0
QUARTER = 4
# What else runs on the machine can only add to a claim: the cost itself is seen in those that it spared.
UNDISTURBED = 0.1


def measure(place: BenchDatabase, sizes: Sizes) -> Iterator[Figure]:
    with place.engine() as engine:
        holder = new_id()
        engine.run(store.register(holder=holder, name="bench", host="", pid=0, info="{}", lease_s=36_000.0))
        small = _claim_ms(engine, holder, sizes, SMALL)
        yield Figure(
            "growth", f"claim of {LIMIT}, backlog {SMALL:,}", small, "ms", _raw_claim_ms(place, engine, sizes)
        )
        again = _claim_ms(engine, holder, sizes, SMALL)
        large = _claim_ms(engine, holder, sizes, sizes.backlog_jobs)
        yield Figure(
            "growth", f"claim, backlog {sizes.backlog_jobs:,}", large, "ms", again, f"backlog {SMALL:,}"
        )
        again = _claim_ms(engine, holder, sizes, SMALL)
        kept = _claim_ms(engine, holder, sizes, SMALL, finished=sizes.finished_jobs)
        yield Figure("growth", f"claim, {sizes.finished_jobs:,} finished", kept, "ms", again, "none finished")
        again = _claim_ms(engine, holder, sizes, SMALL)
        later = _claim_ms(engine, holder, sizes, SMALL, tomorrow=sizes.tomorrow_jobs)
        yield Figure(
            "growth", f"claim, {sizes.tomorrow_jobs:,} due tomorrow", later, "ms", again, "none tomorrow"
        )
        engine.run(store.retire(holder=holder))
        engine.run(table.clear())
        if isinstance(engine, PostgresEngine):
            yield from _under_snapshot(place, engine, sizes)


def _claim_ms(
    engine: AnyEngine, holder: str, sizes: Sizes, backlog: int, *, finished: int = 0, tomorrow: int = 0
) -> float:
    """The time of an undisturbed claim, taken back each time so that the next one meets the same tables."""
    engine.run(table.clear())
    table.fill(engine, backlog)
    table.fill(engine, tomorrow, delay_s=TOMORROW_S)
    table.fill_finished(engine, finished)
    engine.run(table.vacuum())
    claim = store.claim("bench", [store.Mark(0)], holder=holder, names=["noop"], limit=LIMIT, margin_s=60.0)
    took_ms = []
    for _ in range(sizes.claims):
        try:
            with engine.session() as session:
                began = time.perf_counter()
                claimed = session.run(claim)
                took_ms.append((time.perf_counter() - began) * 1e3)
                assert len(claimed) == LIMIT
                raise TakenBack
        except TakenBack:
            pass
    return percentile(took_ms, UNDISTURBED)


class TakenBack(Exception):
    """Not an error: it rolls back the claim that was measured."""


def _raw_claim_ms(place: BenchDatabase, engine: AnyEngine, sizes: Sizes) -> float:
    took_ms, holder = [], new_id()
    with place.raw(engine) as raw:
        for _ in range(sizes.claims):
            raw.connection.execute("BEGIN")
            began = time.perf_counter()
            rows = raw.run(
                "raw_claim", queue="bench", limit=LIMIT, holder=holder, now_us=time.time_ns() // 1000
            )
            took_ms.append((time.perf_counter() - began) * 1e3)
            assert len(rows) == LIMIT
            raw.connection.execute("ROLLBACK")
    return percentile(took_ms, UNDISTURBED)


def _under_snapshot(place: BenchDatabase, engine: PostgresEngine, sizes: Sizes) -> Iterator[Figure]:
    """The same drain twice, the second time while somebody keeps a snapshot from before it open."""
    free_us, free_rate = _churned(place, engine, sizes, held=False)
    held_us, held_rate = _churned(place, engine, sizes, held=True)
    jobs = f"{sizes.snapshot_jobs:,} jobs"
    yield Figure(
        "growth", f"claim per job, end of {jobs}, old snapshot held", held_us, "us", free_us, "none held"
    )
    yield Figure("growth", f"drain of {jobs}, old snapshot held", held_rate, "jobs/s", free_rate, "none held")


def _churned(
    place: BenchDatabase, engine: PostgresEngine, sizes: Sizes, *, held: bool
) -> tuple[float, float]:
    """Microseconds a job of an undisturbed claim in the last quarter of a drain, and the drain's jobs a second."""
    engine.run(table.clear())
    table.fill(engine, sizes.snapshot_jobs)
    engine.run(table.vacuum())
    with ExitStack() as stack:
        worker = stack.enter_context(member(place, "drain", slots=SLOTS))
        if held:
            raw = stack.enter_context(place.raw(engine))
            raw.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            raw.connection.execute("SELECT 1")
        told = worker.ask(ask="drain", claims=True)
    took_s = (told["last_ns"] - told["first_ns"]) / 1e9
    last = told["claims"][-max(1, len(told["claims"]) // QUARTER) :]
    costs_us = [duration_s / count * 1e6 for count, duration_s in last]
    return percentile(costs_us, UNDISTURBED), told["count"] / took_s
