"""What does the handover of ends cost a submit and an end, and what does a take cost beside many ends that are held?

    python bench/handovers.py [rounds] [postgres|sqlite]

All on one database in one run, each round plain jobs first: told is the median of the rounds, and the median of each
round's ratio to its plain jobs. Jobs without a handover are ended beside no line, and beside 10,000 ends that nobody
has confirmed; so are takes, each followed by its confirmation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from beside import PLAIN, on_each_engine, timed_us, told

from fencerow.bench import table
from fencerow.bench.place import AnyEngine, BenchDatabase
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import NewJob, Template
from fencerow.core.store import store
from fencerow.handovers.handovers import TakeOf, confirm, take
from fencerow.handovers.terms import HandoverTerms

ROUNDS = 7
SINGLES = 100
CHUNK = 1_000
GROUP = 100
HELD = 10_000
KEYS = 100
WORK = Template(queue="bench", name="noop")
Found = Mapping[str, list[float]]


def jobs(count: int, receiver: str | None) -> list[NewJob]:
    terms = [
        None if receiver is None else HandoverTerms(receiver, f"line {number}", 600.0).terms
        for number in range(KEYS)
    ]
    return [NewJob(new_id(), '{"t":0}', 7, WORK, terms=terms[number % KEYS]) for number in range(count)]


def submitted(engine: AnyEngine, wanted: Sequence[NewJob]) -> None:
    engine.run(store.submit_gated(wanted) if wanted[0].terms is not None else store.submit(wanted))


def submits_us(engine: AnyEngine, receiver: str | None, chunk: int, count: int) -> float:
    made = [jobs(chunk, receiver) for _ in range(count)]
    return timed_us([lambda each=each: submitted(engine, each) for each in made], chunk)  # type: ignore[misc]


def ends_us(engine: AnyEngine, holder: str, receiver: str | None, count: int = CHUNK) -> float:
    """Microseconds for each job that is claimed and ended, in groups."""
    for _ in range(count // CHUNK):
        submitted(engine, jobs(CHUNK, receiver))

    def group() -> None:
        claim = store.claim(
            "bench", [store.Mark(0)], holder=holder, names=["noop"], limit=GROUP, margin_s=60.0
        )
        ended = [store.Success(job.id, job.attempt, "null") for job in engine.run(claim)]
        assert len(engine.run(store.succeed(ended, holder=holder))) == GROUP

    return timed_us([group] * (count // GROUP), GROUP)


def takes_us(engine: AnyEngine, receiver: str) -> float:
    """Microseconds for a take of ten ends and their confirmations, for each."""

    def ten() -> None:
        taker = TakeOf(receiver, new_id(), 60.0)
        taken = engine.run(take(taker, limit=10))
        assert len(taken) == 10
        for each in taken:
            done = confirm(each.job_id, receiver=receiver, actor=None, holder=taker.holder, token=each.token)
            assert engine.run(done)

    return timed_us([ten] * (CHUNK // 10), 10)


def measure(place: BenchDatabase, rounds: int) -> Iterator[str]:
    with place.engine() as engine:
        holder = new_id()
        assert engine.run(
            store.register(holder=holder, name="bench", host="here", pid=1, info="{}", lease_s=86_400.0)
        )
        for what, chunk, count in (("one at a time", 1, SINGLES), (f"{CHUNK:,} in one call", CHUNK, 3)):
            found: Found = {PLAIN: [], "with a handover": []}
            for _ in range(rounds):
                engine.run(table.clear())
                found[PLAIN].append(submits_us(engine, None, chunk, count))
                found["with a handover"].append(submits_us(engine, f"submits {what}", chunk, count))
            yield from told(f"submit {what}", found)
        engine.run(table.clear())
        ends: Found = {PLAIN: [], "with a handover": [], f"plain, beside {HELD:,} held": []}
        takes: Found = {PLAIN: [], f"beside {HELD:,} held": []}
        for _ in range(rounds):
            ends[PLAIN].append(ends_us(engine, holder, None))
            ends["with a handover"].append(ends_us(engine, holder, "bot"))
            takes[PLAIN].append(takes_us(engine, "bot"))
        ends_us(engine, holder, "nobody", HELD)
        engine.run(table.vacuum())
        for _ in range(rounds):
            ends[f"plain, beside {HELD:,} held"].append(ends_us(engine, holder, None))
            ends_us(engine, holder, "bot")
            takes[f"beside {HELD:,} held"].append(takes_us(engine, "bot"))
        yield from told("claim and end", ends)
        yield from told("take and confirm", takes)


if __name__ == "__main__":
    on_each_engine(measure, ROUNDS)
