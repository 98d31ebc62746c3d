"""Workers are killed again and again while flows run: every flow ends once, and each of its jobs has succeeded once."""

from __future__ import annotations

import random
import time

import pytest

from tests.core.store.stage import rows, table
from tests.events.conftest import url_of
from tests.flows.member import JOBS, flows_at, submitted, work
from tests.kit.forking import Fork, context
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S

FLOWS, EVERY = 20, 12  # a worker is killed whenever so many more jobs have ended
LOOK_S = 0.05


@pytest.mark.prove
def test_every_flow_ends_once_whoever_is_killed(engine: AnyEngine) -> None:
    rows(engine, f"CREATE TABLE {table(engine, 'ran')} (word TEXT NOT NULL)")
    url = url_of(engine)
    with flows_at(url) as app:
        handles = [submitted(app, f"flow {at}") for at in range(FLOWS)]
        kills = _killing(engine, url)
        counts = [each.counts() for each in handles]
        lasts = [each.job_named("last").result(PATIENCE_S) for each in handles]
        states = {each.refresh().state for each in handles}

    assert kills >= FLOWS * JOBS // EVERY - 2
    assert [each.succeeded for each in counts] == [JOBS] * FLOWS
    assert states == {"succeeded"}
    assert all(sorted(each.split()).count("part") == JOBS - 4 for each in lasts)
    words = [str(each["word"]) for each in rows(engine, f"SELECT word FROM {table(engine, 'ran')}")]
    assert len(words) == len(set(words)) == FLOWS * (JOBS + 1)  # with the callback of each


def _killing(engine: AnyEngine, url: str) -> int:
    """Run two workers until all is done; kill one, and start another, again and again. Returns how often."""
    chance, kills, next_kill = random.Random(7), 0, EVERY
    until = time.monotonic() + PATIENCE_S
    workers = [_started(url), _started(url)]
    try:
        while (done := len(rows(engine, f"SELECT word FROM {table(engine, 'ran')}"))) < FLOWS * (JOBS + 1):
            assert time.monotonic() < until, f"{done} jobs have ended; a flow stands still"
            if done >= next_kill:
                at = chance.randrange(2)
                _killed(workers[at])
                workers[at], kills, next_kill = _started(url), kills + 1, done + EVERY
            time.sleep(LOOK_S)
    finally:
        for each in workers:
            _killed(each)
    return kills


def _started(url: str) -> Fork:
    worker = context.Process(target=work, args=(url,), daemon=True)
    worker.start()
    return worker


def _killed(worker: Fork) -> None:
    worker.kill()
    worker.join(PATIENCE_S)
