"""The databases of `growth.py` and `churn.py`: so much of everything, and a worker that is registered there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fencerow import App, Client, Config
from fencerow.bench import table
from fencerow.bench.place import AnyEngine, with_bench
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import Claimed, NewJob, Template
from fencerow.core.store import store
from fencerow.db.run import Operation
from fencerow.events import sequencer
from fencerow.events.outbox import NewEvent, publish_many
from fencerow.flows.builder import Flow
from fencerow.limits import Limit
from fencerow.schedules.definition import Definition, Overlap
from fencerow.schedules.definitions import RowKind, WantedRow
from fencerow.schedules.reconciling import reconcile
from fencerow.turns import handing

QUEUE, KEYED, LIMITED, ASLEEP, FLOWS = "bench", "keyed", "limited", "asleep", "flows"
NARROW = ("narrow",)
CHUNK = 5_000
LEASE_S, PERIOD_S = 36_000.0, 86_400.0
PLAIN, OF_KEYS, OF_LIMITS = (Template(queue=queue, name="noop") for queue in (QUEUE, KEYED, LIMITED))


@dataclass(frozen=True)
class Stored:
    """How much of each a database holds."""

    queued: int = 1_000
    finished: int = 1_000
    keys: int = 100
    limited: int = 100
    schedules: int = 10
    flows: int = 10
    steps: int = 100
    sleeping: int = 100
    events: int = 100


class Side:
    """One database, filled, with a worker that is registered there."""

    def __init__(self, url: str, holds: Stored) -> None:
        self.holds, self.holder = holds, new_id()
        self.mark = store.Mark(0)  # behind which a worker looks, but for its sweeps
        self.app = App(config=Config(url=url, pool_max=10))
        self.app.migrate()
        engine = self.app.engine
        self.engine: AnyEngine = with_bench(engine)  # type: ignore[arg-type]
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
        self._submitted(NewJob(new_id(), "{}", 2, OF_LIMITS, None, NARROW) for _ in range(holds.limited))
        while engine.run(handing.hand_over()).queued:
            pass
        work = NewJob("", "{}", 2, PLAIN)
        rules = Definition(spec={"interval_s": PERIOD_S, "spread": False}, work=work, overlap=Overlap.SKIP)
        wanted = [WantedRow(f"s{at:06}", "", RowKind.SINGLE, rules) for at in range(holds.schedules)]
        engine.run(reconcile(wanted, owner="bench", own=["noop"], running=[], actor="bench"))
        self._flows()
        table.fill(engine, holds.sleeping, queue=ASLEEP)
        engine.run(table.fall_asleep(ASLEEP))
        engine.run(table.fill_steps(holds.steps))
        for first in range(0, holds.events, CHUNK):
            publish_many(self.app, events(min(CHUNK, holds.events - first)))
        placed = engine.run(sequencer.sequence())
        while placed.has_more:
            placed = engine.run(sequencer.sequence(placed.memory))
        self.placed = placed.memory  # behind which a worker looks, but when it begins
        engine.run(table.vacuum())

    def _submitted(self, jobs: Iterator[NewJob]) -> None:
        wanted = list(jobs)
        for first in range(0, len(wanted), CHUNK):
            self.engine.run(store.submit_gated(wanted[first : first + CHUNK]))

    def _flows(self) -> None:
        @self.app.job(name="noop", queue=FLOWS)
        async def part() -> None: ...

        self._part = part
        for at in range(self.holds.flows):
            self.flow(f"flow {at}").submit()

    def flow(self, name: str) -> Flow:
        """A flow of two jobs, one behind the other."""
        flow = self.app.flow(name)
        first = flow.add("first", self._part.call())
        flow.add("last", self._part.call(), needs=[first])
        return flow

    def claim(self, queue: str, count: int, mark: store.Mark | None = None) -> Operation[list[Claimed]]:
        marks = [mark or store.Mark(0)]
        return store.claim(queue, marks, holder=self.holder, names=["noop"], limit=count, margin_s=60.0)

    def end(self, claimed: Sequence[Claimed]) -> Operation[Any]:
        ends = [store.Success(job.id, job.attempt, "1") for job in claimed]
        return store.succeed(ends, holder=self.holder)


def events(count: int) -> list[NewEvent]:
    return [NewEvent("bench", {"n": at}, f"k{at % 100}") for at in range(count)]
