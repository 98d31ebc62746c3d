"""Runs flows by workers of which one is killed again and again, and says what became of them."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from fencerow.errors import Busy
from fencerow.flows import FlowHandle
from tests.core.store.stage import rows, table
from tests.flows.campaign.work import JOBS, OUTER, expected, fails, flows_at, submitted, work
from tests.kit.forking import Fork, context
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S

WORKERS = 3
LOOK_S = 0.05
LOOKS_MAX = 20  # each waits for as long as its engine does
LEFT = {
    "live jobs": "SELECT count(*) AS n FROM {jobs}",
    "open flows": "SELECT count(*) AS n FROM {flows} WHERE ended_at IS NULL",
    "ends that were not told": "SELECT count(*) AS n FROM {flow_jobs} WHERE state IS NOT NULL AND NOT told",
    "waits for flows": "SELECT count(*) AS n FROM {flow_waits}",
}


@dataclass
class Found:
    """What became of the flows. `wrong`: each promise that was broken."""

    kills: int
    took_s: float
    facts: dict[str, Any] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def run(engine: AnyEngine, url: str, *, flows: int, kills: int, seed: int) -> Found:
    """The whole load, on a migrated database."""
    rows(engine, f"CREATE TABLE {table(engine, 'ran')} (word TEXT NOT NULL)")
    began = time.monotonic()
    with flows_at(url) as app:
        handles = [submitted(app, at) for at in range(flows)]
        killed = _killing(engine, url, flows=flows, kills=kills, seed=seed)
        found = Found(killed, round(time.monotonic() - began, 1))
        _judge(engine, handles, found)
    return found


# --- killing ---------------------------------------------------------------------------------------


def _killing(engine: AnyEngine, url: str, *, flows: int, kills: int, seed: int) -> int:
    """Run workers until all is done; kill one, and start another, whenever so much more was done. Returns how often."""
    chance, killed = random.Random(seed), 0
    effects = sum(1 for at in range(flows) for _ in expected(at))
    due_at = next_kill(0, effects, kills)
    workers = [_started(url) for _ in range(WORKERS)]
    seen, moved_at = -1, time.monotonic()
    try:
        while (done := _done(engine)) is not None:
            if done != seen:
                seen, moved_at = done, time.monotonic()
            assert time.monotonic() < moved_at + PATIENCE_S, f"a flow stands still: {_left(engine)}"
            if killed < kills and done >= due_at:
                at = chance.randrange(WORKERS)
                _stop(workers[at])
                workers[at], killed = _started(url), killed + 1
                due_at = next_kill(done, effects, kills - killed)
            time.sleep(LOOK_S)
    finally:
        for each in workers:
            _stop(each)
    return killed


def next_kill(done: int, effects: int, kills: int) -> int:
    """At how many effects the next worker is killed, so that what is left suffices for all kills that are left.

    A look may come late, or a kill take long, while much is done. So it is counted anew at each kill.
    """
    return done + max(1, (effects - done) // (kills + 1))


def _done(engine: AnyEngine) -> int | None:
    """How many effects there are; None: all has ended. A look waits for the one writer of a file, so it asks again."""
    for _ in range(LOOKS_MAX):
        try:
            done = _count(engine, f"SELECT count(*) AS n FROM {table(engine, 'ran')}")
            return done if any(_left(engine).values()) else None
        except Busy:
            continue
    raise AssertionError("the file stays locked")


def _started(url: str) -> Fork:
    worker = context.Process(target=work, args=(url,), daemon=True)
    worker.start()
    return worker


def _stop(worker: Fork) -> None:
    worker.kill()
    worker.join(PATIENCE_S)


# --- judging ---------------------------------------------------------------------------------------


def _judge(engine: AnyEngine, handles: list[FlowHandle], found: Found) -> None:
    wrong = found.wrong
    words = Counter(str(each["word"]) for each in rows(engine, f"SELECT word FROM {table(engine, 'ran')}"))
    wanted = Counter(chain.from_iterable(expected(at) for at in range(len(handles))))
    wrong += [
        f"{count} times, not {wanted[word]}: {word}" for word, count in words.items() if count != wanted[word]
    ]
    wrong += [f"never: {word}" for word in wanted if word not in words]
    for at, handle in enumerate(handles):
        counts, record = handle.counts(), handle.refresh()
        failed = int(fails(at))
        if (counts.succeeded, counts.failed, counts.total) != (OUTER - failed, failed, OUTER):
            wrong.append(f"flow {at}: {counts}")
        if record.state != ("failed" if failed else "succeeded"):
            wrong.append(f"flow {at} is {record.state}")
    made = _count(engine, "SELECT count(*) AS n FROM {finished_jobs}")
    if made != len(handles) * (JOBS + 2):
        wrong.append(f"{made} jobs have ended, not {len(handles) * (JOBS + 2)}")
    if (stored := _count(engine, "SELECT count(*) AS n FROM {flows}")) != 2 * len(handles):
        wrong.append(f"{stored} flows, not {2 * len(handles)}")
    kinds = rows(engine, "SELECT kind, count(*) AS n FROM {job_events} GROUP BY kind ORDER BY kind")
    found.facts = {
        "flows": len(handles),
        "jobs": made,
        "kills": found.kills,
        "effects": words.total(),
        "timeline": {str(each["kind"]): int(str(each["n"])) for each in kinds},
        "took_s": found.took_s,
    }


def _left(engine: AnyEngine) -> dict[str, int]:
    return {what: _count(engine, text) for what, text in LEFT.items()}


def _count(engine: AnyEngine, text: str) -> int:
    return int(str(rows(engine, text)[0]["n"]))
