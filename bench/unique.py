"""What does each rule of unique jobs cost a submit, and what does it cost the end of a job?

    python bench/unique.py [rounds] [postgres|sqlite]

All on one database in one run. Each round measures plain jobs and then every rule, so that what else the machine does
meets all of them; told is the median of the rounds, and the median of each round's ratio to its plain jobs. Submits one
at a time and 1,000 in one call; and jobs that are claimed and ended in groups of 100, plain and of a unique key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from beside import PLAIN, on_each_engine, timed_us, told

from fencerow.bench import table
from fencerow.bench.place import AnyEngine, BenchDatabase
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import NewJob, Template
from fencerow.core.model.submission import Submission
from fencerow.core.store import store
from fencerow.unique.rules import UniqueClaim, UniqueRule

ROUNDS = 7
SINGLES = 100
CHUNK = 1_000
GROUP = 100
WORK = Template(queue="bench", name="noop")
KEEP, REPLACE = UniqueRule(), UniqueRule(replaces=True)
DEBOUNCE = UniqueRule(replaces=True, put_off_s=3_600.0, put_off_max_s=36_000.0)
THROTTLE = UniqueRule(period_s=3_600.0)
# Of each the rule, and whether the keys have a job already.
RULES: Mapping[str, tuple[UniqueRule | None, bool]] = {
    PLAIN: (None, False),
    "a new key": (KEEP, False),
    "a key that has a job": (KEEP, True),
    "until the start, a key that has one": (UniqueRule(states=("waiting", "queued")), True),
    "replace": (REPLACE, True),
    "debounce": (DEBOUNCE, True),
    "throttle, a key that has a job": (THROTTLE, True),
}


def jobs(count: int) -> list[NewJob]:
    return [NewJob(new_id(), '{"t":0}', 7, WORK) for _ in range(count)]


def under(rule: UniqueRule, keys: Sequence[str]) -> list[Submission]:
    claims = (UniqueClaim(scope="bench", key=key, rule=rule) for key in keys)
    return [
        Submission(msgspec.structs.replace(job, terms=claim.terms))
        for job, claim in zip(jobs(len(keys)), claims, strict=True)
    ]


def submits_us(engine: AnyEngine, rule: UniqueRule | None, *, known: bool, chunk: int, count: int) -> float:
    """Microseconds for each job, the median of `count` submits of so many each."""
    if rule is None:
        return timed_us([lambda: engine.run(store.submit(jobs(chunk)))] * count, chunk)
    names = [[new_id() for _ in range(chunk)] for _ in range(count)]
    if known:
        engine.run(store.submit_asked(under(rule, [name for each in names for name in each])))
    made = [under(rule, each) for each in names]
    return timed_us([lambda each=each: engine.run(store.submit_asked(each)) for each in made], chunk)  # type: ignore[misc]


def ends_us(engine: AnyEngine, holder: str, rule: UniqueRule | None) -> float:
    """Microseconds for each job that is claimed and ended, in groups."""
    engine.run(table.clear())
    if rule is None:
        engine.run(store.submit(jobs(CHUNK)))
    else:
        engine.run(store.submit_asked(under(rule, [new_id() for _ in range(CHUNK)])))

    def group() -> None:
        claim = store.claim(
            "bench", [store.Mark(0)], holder=holder, names=["noop"], limit=GROUP, margin_s=60.0
        )
        ended = [store.Success(job.id, job.attempt, "null") for job in engine.run(claim)]
        assert len(engine.run(store.succeed(ended, holder=holder))) == GROUP

    return timed_us([group] * (CHUNK // GROUP), GROUP)


def measure(place: BenchDatabase, rounds: int) -> Iterator[str]:
    with place.engine() as engine:
        holder = new_id()
        assert engine.run(
            store.register(holder=holder, name="bench", host="here", pid=1, info="{}", lease_s=86_400.0)
        )
        for what, chunk, count in (("one at a time", 1, SINGLES), (f"{CHUNK:,} in one call", CHUNK, 3)):
            found: dict[str, list[float]] = {name: [] for name in RULES}
            for _ in range(rounds):
                engine.run(table.clear())
                for name, (rule, known) in RULES.items():
                    found[name].append(submits_us(engine, rule, known=known, chunk=chunk, count=count))
            yield from told(f"submit {what}", found)
        ends: dict[str, list[float]] = {PLAIN: [], "of a unique key": []}
        for _ in range(rounds):
            ends[PLAIN].append(ends_us(engine, holder, None))
            ends["of a unique key"].append(ends_us(engine, holder, KEEP))
        yield from told("claim and end", ends)


if __name__ == "__main__":
    on_each_engine(measure, ROUNDS)
