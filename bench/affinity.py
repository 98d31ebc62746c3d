"""What does a claim pay for jobs that wait for a label, and what does a claim by label cost?

    python bench/affinity.py [waiting] [postgres|sqlite]

Claims of 100 jobs each, the least of several medians: plain ones, alone, beside so many jobs that wait for a label, and
beside as many of another queue; and claims by label, of jobs that wait for it and of others. Kinds take turns, so that
a busy machine troubles all alike.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from fencerow.bench import table
from fencerow.bench.place import AnyEngine, private_postgres, private_sqlite
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import NewJob, Template
from fencerow.core.store import store
from fencerow.core.store.claims import Mark
from fencerow.db.postgres import PostgresEngine

WAITING = 100_000
CLAIMED = 100
CLAIMS = 20
ROUNDS = 5
CHUNK = 5_000
WORK = Template(queue="bench", name="noop")
ELSEWHERE = Template(queue="elsewhere", name="noop")


def of(label: str | None, count: int, template: Template = WORK) -> list[NewJob]:
    return [NewJob(new_id(), '{"t":0}', 7, template, affinity=label) for _ in range(count)]


def put(engine: AnyEngine, jobs: list[NewJob]) -> None:
    storing = store.submit_by_copy if isinstance(engine, PostgresEngine) else store.submit_gated
    for first in range(0, len(jobs), CHUNK):
        engine.run(storing(jobs[first : first + CHUNK]))


def claims(engine: AnyEngine, claim: Callable[[str], int]) -> float:
    """The median of some claims, in milliseconds; each has its own holder."""
    times = []
    for _ in range(CLAIMS):
        holder = new_id()
        engine.run(store.register(holder=holder, name="w", host="h", pid=1, info="{}", lease_s=3600.0))
        began = time.perf_counter()
        found = claim(holder)
        times.append(time.perf_counter() - began)
        assert found == CLAIMED, found
    return statistics.median(times) * 1e3


def measured(engine: AnyEngine, waiting: int) -> dict[str, float]:
    def plainly(holder: str) -> int:
        claim = store.claim("bench", [Mark(0)], holder=holder, names=["noop"], limit=CLAIMED, margin_s=60.0)
        return len(engine.run(claim))

    def by_label(holder: str) -> int:
        lanes = [Mark(0, lane="label:gpu"), Mark(0)]
        claim = store.claim("bench", lanes, holder=holder, names=["noop"], limit=CLAIMED, margin_s=60.0)
        return len(engine.run(claim))

    def blocked() -> list[NewJob]:
        return of("elsewhere", waiting)

    def in_another_queue() -> list[NewJob]:
        return of(None, waiting, ELSEWHERE)

    kinds: dict[str, tuple[str | None, Callable[[], list[NewJob]], Callable[[str], int]]] = {
        f"plain, {waiting} of another queue": (None, in_another_queue, plainly),
        f"plain, {waiting} wait for a label": (None, blocked, plainly),
        "plain, nobody else": (None, list[NewJob], plainly),
        "by label, of jobs that wait for it": ("gpu", list[NewJob], by_label),
        "by label, of jobs that wait for nobody": (None, list[NewJob], by_label),
    }
    found: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(ROUNDS):
        for name, (label, others, claim) in kinds.items():
            engine.run(table.clear())
            put(engine, others() + of(label, CLAIMED * CLAIMS))
            engine.run(table.vacuum())
            found[name].append(claims(engine, claim))
    return {name: min(each) for name, each in found.items()}


def main(waiting: int = WAITING, *dialects: str) -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for dialect in dialects or ("postgres", "sqlite"):
            place = stack.enter_context(
                private_postgres() if dialect == "postgres" else private_sqlite(folder)
            )
            with place.engine() as engine:
                found = measured(engine, waiting)
            first = next(iter(found.values()))
            for name, milliseconds in found.items():
                print(f"{dialect:8}  {name:40} {milliseconds:7.2f} ms  {milliseconds / first:.2f}")


if __name__ == "__main__":
    numbers = [int(each) for each in sys.argv[1:] if each.isdigit()]
    main(*(numbers[:1] or [WAITING]), *(each for each in sys.argv[1:] if not each.isdigit()))
