"""A breaker: failures stop the starts of a limit, then a few try; no attempt is spent, and nobody starts meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from fencerow import Client
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.core.store.attempts import Failure, Requeue
from fencerow.limits import Breaker, Limit
from fencerow.testing.clock import DatabaseClock
from fencerow.turns import handing, looks
from tests.core.store.stage import rows
from tests.core.worker.stage import WAIT_S, quick, worker_of
from tests.kit import jobs
from tests.kit.jobs import QUEUE, AnyEngine, claim, read, register
from tests.limits.test_named import at, define, end, hand_over, limited
from tests.limits.test_queues import bounded, many

BREAKER = Breaker(2, 60, stop_s=30, trials=1)
AT_ONCE = Breaker(1, 60, stop_s=30, trials=1)
ERROR = '{"type": "E", "message": "", "code": "error"}'


def fail(engine: AnyEngine, holder: str, *ids: str, attempt: int = 1, code: str = "permanent_error") -> None:
    """End them for good."""
    error = ERROR.replace('"error"', f'"{code}"')
    assert engine.run(store.fail([Failure(job_id, attempt, error) for job_id in ids], holder=holder))


def retry(engine: AnyEngine, holder: str, job_id: str, kind: str = "retried") -> None:
    failures = int(kind == "retried")
    back = Requeue(
        id=job_id, attempt=1, kind=kind, delay_s=1.0, failures=failures, snoozes=1 - failures, detail=ERROR
    )
    assert engine.run(store.requeue([back], holder=holder))


def told(engine: AnyEngine) -> int:
    """How many failures nobody has taken yet."""
    prefix = "fencerow." if engine.dialect == "postgres" else "fencerow_"
    return len(rows(engine, f"SELECT name FROM {prefix}limit_failures"))


def test_failures_stop_the_starts_then_one_tries_and_its_success_lets_all_go(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    define(engine, Limit("a", at_once=3, breaker=BREAKER))
    ids, holder = limited(engine, "a", count=9), register(engine)
    assert hand_over(engine) == ids[:3]
    claim(engine, holder, limit=2)
    fail(engine, holder, ids[0])
    retry(engine, holder, ids[1])

    assert hand_over(engine) == []
    assert at(engine, ids[2]) == ["limit:a"], "its turn was given, but it has not started: it waits again"
    assert claim(engine, holder, limit=9) == []
    assert [read(engine, each).attempt for each in (ids[2], ids[3])] == [0, 0]
    _, due_us = engine.run(looks.turns_wanted())
    assert due_us is not None and 0 < due_us <= 30e6

    clock.advance(30)
    (trial,) = hand_over_due(engine)
    assert hand_over(engine) == []
    claim(engine, holder, limit=9)
    end(engine, holder, trial)
    assert len(hand_over(engine)) == 3
    assert told(engine) == 0


def hand_over_due(engine: AnyEngine) -> list[str]:
    return [job.id for job in engine.run(handing.hand_over()).queued]


def opened(engine: AnyEngine, holder: str, breaker: Breaker = AT_ONCE, count: int = 6) -> list[str]:
    """A limit whose breaker has just been opened; those that wait."""
    define(engine, Limit("a", breaker=breaker))
    first, *ids = limited(engine, "a", count=count)
    assert first in hand_over(engine)
    claim(engine, holder, limit=1)
    fail(engine, holder, first)
    assert hand_over(engine) == []
    return ids


def test_a_trial_that_fails_stops_the_starts_again(engine: AnyEngine, clock: DatabaseClock) -> None:
    holder = register(engine)
    opened(engine, holder)
    clock.advance(30)
    (trial,) = hand_over_due(engine)
    claim(engine, holder)
    fail(engine, holder, trial)

    assert hand_over(engine) == []
    _, due_us = engine.run(looks.turns_wanted())
    assert due_us is not None and 0 < due_us <= 30e6


@pytest.mark.parametrize("how", ["cancelled", "snoozed", "failed_by_handler"])
def test_a_trial_that_ends_in_neither_way_gives_its_place_to_another(
    engine: AnyEngine, clock: DatabaseClock, how: str
) -> None:
    holder = register(engine)
    ids = opened(engine, holder)
    clock.advance(30)
    (trial,) = hand_over_due(engine)
    assert hand_over(engine) == [] and trial == ids[0]
    if how == "cancelled":
        engine.run(store.cancel(trial, actor="ada"))
    else:
        claim(engine, holder)
        retry(engine, holder, trial, "snoozed") if how == "snoozed" else fail(engine, holder, trial, code=how)

    assert hand_over(engine) == [ids[1]]


def test_a_trial_whose_worker_died_goes_on_and_nobody_beside_it(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    ids = opened(engine, register(engine))
    clock.advance(30)
    (trial,) = hand_over_due(engine)
    dying, other = register(engine), register(engine)
    claim(engine, dying)
    engine.run(store.retire(holder=dying))
    engine.run(store.reclaim([dying], limit=9, actor=None))

    assert engine.run(handing.hand_over(["limit:a"])).queued == []
    assert read(engine, trial).state is State.QUEUED
    suspects = engine.run(store.claim_suspect(QUEUE, holder=other, names=[jobs.NAME], margin_s=9.0))
    assert [job.id for job in suspects] == [trial]
    engine.run(store.succeed([store.Success(trial, 2, "1")], holder=other))
    assert hand_over(engine) == ids[1:]


def test_an_ephemeral_trial_closes_it_too(engine: AnyEngine, clock: DatabaseClock) -> None:
    holder = register(engine)
    opened(engine, holder, count=1)
    clock.advance(30)
    (trial,) = limited(engine, "a", ephemeral=True)
    assert hand_over_due(engine) == [trial]
    claim(engine, holder)
    ids = limited(engine, "a", count=3)
    assert hand_over(engine) == []
    end(engine, holder, trial)
    assert hand_over(engine) == ids


def test_failures_count_for_as_long_as_it_says(engine: AnyEngine, clock: DatabaseClock) -> None:
    define(engine, Limit("a", breaker=BREAKER))
    ids, holder = limited(engine, "a", count=3), register(engine)
    assert hand_over(engine) == ids
    claim(engine, holder, limit=9)
    fail(engine, holder, ids[0])
    hand_over(engine)
    clock.advance(61)
    fail(engine, holder, ids[1])
    (more,) = limited(engine, "a")
    assert hand_over(engine) == [more]
    fail(engine, holder, ids[2])
    limited(engine, "a")
    assert hand_over(engine) == []


def test_each_key_has_a_breaker_for_itself(engine: AnyEngine) -> None:
    define(engine, Limit("t", breaker=AT_ONCE, per_key=True), Limit("t/calm", at_once=9))
    holder = register(engine)
    bad, good, calm = (limited(engine, f"t/{key}", count=2) for key in ("bad", "good", "calm"))
    assert len(hand_over(engine)) == 6
    claim(engine, holder, limit=9)
    fail(engine, holder, bad[0], calm[0])

    waiting = [limited(engine, f"t/{key}")[0] for key in ("bad", "good", "calm")]
    assert sorted(hand_over(engine)) == sorted(waiting[1:])
    fail(engine, holder, good[0], calm[1])
    hand_over(engine)
    assert told(engine) == 0, "what one of its own definition was told is taken too"


def test_a_breaker_is_changed_and_removed_while_it_is_open(engine: AnyEngine) -> None:
    holder = register(engine)
    ids = opened(engine, holder)
    define(engine, Limit("a", at_once=2))
    assert hand_over(engine) == ids[:2]
    claim(engine, holder, limit=9)
    fail(engine, holder, ids[0])
    assert told(engine) == 0, "nobody wants to know"
    define(engine, Limit("a", at_once=3, breaker=AT_ONCE))
    assert hand_over(engine) == ids[2:4], "a new one knows nothing of the old one"


def test_a_timeout_is_a_failure_and_a_crash_is_none(engine: AnyEngine) -> None:
    define(engine, Limit("a", breaker=AT_ONCE), Limit("b", breaker=AT_ONCE))
    (late,), (crashed,) = limited(engine, "a"), limited(engine, "b")
    hand_over(engine)
    holder = register(engine)
    claim(engine, holder, limit=2)
    engine.run(store.crash([store.Crash(crashed, 1, 1.0, "gone")], holder=holder))
    engine.run(store.renew(holder=holder, stated=jobs.overdue((late, 1, True))))
    engine.run(store.time_out(limit=9, delay_s=1.0, actor=None))
    waiting = limited(engine, "a") + limited(engine, "b")

    assert hand_over(engine) == waiting[1:]


@pytest.mark.parametrize("name", ["queue:mail", "fleet"])
def test_a_queue_and_the_fleet_have_breakers_too(engine: AnyEngine, clock: DatabaseClock, name: str) -> None:
    holder = register(engine)
    define(engine, Limit(name, breaker=AT_ONCE))
    many(engine, 9)
    first, second = (job.id for job in bounded(engine, holder, 2).jobs)
    fail(engine, holder, first)

    stopped = bounded(engine, holder)
    assert stopped.jobs == [] and stopped.again_s is not None and 0 < stopped.again_s <= 30
    assert "open" in stopped.news[0]
    end(engine, holder, second)
    assert bounded(engine, holder).jobs == [], "it was started before"
    clock.advance(30)
    (trial,) = bounded(engine, holder).jobs
    assert bounded(engine, holder).jobs == []
    end(engine, holder, trial.id)
    closed = bounded(engine, holder)
    assert len(closed.jobs) == 6 and "closed" in closed.news[0]


async def test_workers_say_when_it_opens_and_when_it_closes(
    engine: AnyEngine, caplog: pytest.LogCaptureFixture
) -> None:
    done = asyncio.Event()
    calls: list[int] = []

    async def send() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("the provider is down")
        done.set()

    await Client(engine).limits.adefine(Limit("a", at_once=1, breaker=Breaker(1, 60, stop_s=0.1)))
    await engine.arun(store.submit_gated([jobs.new_job("{}", limits=("a",)) for _ in range(3)]))
    async with worker_of(engine, send, config=quick()), asyncio.timeout(WAIT_S):
        await done.wait()
        while len(calls) < 4:
            await asyncio.sleep(0.005)

    said = [each.getMessage() for each in caplog.records if "breaker" in each.getMessage()]
    assert len(said) == 2
    assert "limit a is open: nothing starts for 0.1 s, then 1 job may try" in said[0]
    assert "closed" in said[1]
