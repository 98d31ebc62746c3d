"""Every guard that stands in a statement is needed: with it taken out, the scenario that it protects turns red.

A test that cannot fail proves nothing, so each scenario here also runs as it should with the guard in place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from fencerow.core.model.ids import new_id
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.operators.queues import pause_queue
from fencerow.retention.disown import disown
from fencerow.testing.clock import DatabaseClock
from tests.core.store import stage
from tests.core.store.stage import Placed, bring, changed, dump
from tests.kit.jobs import LATE_US, AnyEngine, bury, claim, new_job, register, running, submit

Scenario = Callable[[AnyEngine, DatabaseClock], None]
Taken = tuple[tuple[str, str], ...]  # texts of a statement, and what stands there without the guard

FENCED: dict[str, Callable[[AnyEngine, Placed], object]] = {
    "succeed": stage.succeed,
    "fail": stage.fail,
    "stop": stage.stop,
    "requeue": stage.retry,
    "suspend": stage.suspend,
    "crash": stage.crash,
    "note_alone": stage.note_alone,
    "progress": lambda e, j: e.run(
        store.progress(j.id, holder=j.holder, attempt=j.attempt, percent=1.0, note=None)
    ),
    "log": lambda e, j: e.run(store.log(j.id, holder=j.holder, attempt=j.attempt, level="info", message="m")),
    "fetch_args": lambda e, j: e.run(store.fetch_args(j.id, holder=j.holder, attempt=j.attempt)),
    "check_fence": lambda e, j: (
        e.run(store.check_fence(j.id, holder=j.holder, attempt=j.attempt)) is not None
    ),
    "hold_fence": lambda e, j: e.run(store.hold_fence(j.id, holder=j.holder, attempt=j.attempt)) is not None,
}


@dataclass(frozen=True)
class Guard:
    """A guard of one query as each dialect writes it, and the scenario that must fail without it."""

    query: str
    postgres: Taken
    sqlite: Taken
    scenario: Scenario

    def take_out(self, engine: AnyEngine) -> None:
        for old, new in self.postgres if engine.dialect == "postgres" else self.sqlite:
            engine.queries = engine.queries.altered(self.query, old, new)


def other_attempt(verb: str) -> Scenario:
    def scenario(engine: AnyEngine, clock: DatabaseClock) -> None:
        job = bring(engine, State.RUNNING)
        if verb == "stop":
            stage.ask(engine, job)
        assert not FENCED[verb](engine, Placed(job.id, job.holder, job.attempt + 1))

    return scenario


def other_holder(verb: str) -> Scenario:
    def scenario(engine: AnyEngine, clock: DatabaseClock) -> None:
        job = bring(engine, State.RUNNING)
        if verb == "stop":
            stage.ask(engine, job)
        assert not FENCED[verb](engine, Placed(job.id, register(engine), job.attempt))

    return scenario


def claimed_before_due(engine: AnyEngine, clock: DatabaseClock) -> None:
    submit(engine, new_job(delay_s=60))
    assert claim(engine, register(engine)) == []


def claimed_while_paused(engine: AnyEngine, clock: DatabaseClock) -> None:
    submit(engine)
    engine.run(pause_queue("mail", actor="ada"))
    assert claim(engine, register(engine)) == []


def claimed_by_the_dead(engine: AnyEngine, clock: DatabaseClock) -> None:
    submit(engine)
    holder = register(engine)
    clock.advance(31)
    bury(engine)
    assert claim(engine, holder) == []


def claimed_when_expired(engine: AnyEngine, clock: DatabaseClock) -> None:
    submit(engine, new_job(expires_s=5))
    clock.advance(6)
    assert claim(engine, register(engine)) == []


def disowned(engine: AnyEngine) -> bool:
    return bool(engine.run(disown("mail", 0, age_s=stage.DISOWN_S, look=10, actor=None)))


def disowned_too_soon(engine: AnyEngine, clock: DatabaseClock) -> None:
    submit(engine)
    assert not disowned(engine)


def disowned_though_known(info: str) -> Scenario:
    def scenario(engine: AnyEngine, clock: DatabaseClock) -> None:
        submit(engine)
        clock.advance(stage.DISOWN_S + 1)
        engine.run(store.register(holder=new_id(), name="w", host="h", pid=1, info=info, lease_s=30.0))
        assert not disowned(engine)

    return scenario


def two_suspects_at_once(engine: AnyEngine, clock: DatabaseClock) -> None:
    for _ in range(2):
        job = running(engine, holder := register(engine))
        assert stage.reclaim(engine, Placed(job.id, holder, 1), clock)
    worker = register(engine)
    suspect = store.claim_suspect("mail", holder=worker, names=["send"], margin_s=60)
    assert [len(engine.run(suspect)), len(engine.run(suspect))] == [1, 0]


def requeued_after_a_request(engine: AnyEngine, clock: DatabaseClock) -> None:
    job = bring(engine, State.RUNNING)
    stage.ask(engine, job)
    assert not stage.retry(engine, job)


def suspended_after_a_request(engine: AnyEngine, clock: DatabaseClock) -> None:
    job = bring(engine, State.RUNNING)
    stage.ask(engine, job)
    assert not stage.suspend(engine, job)


def woken_at_its_gate(engine: AnyEngine, clock: DatabaseClock) -> None:
    job = bring(engine, State.WAITING)
    assert engine.run(store.wake([job.id], actor="ada")) == []


def stopped_without_a_request(engine: AnyEngine, clock: DatabaseClock) -> None:
    assert not stage.stop(engine, bring(engine, State.RUNNING))


def died_while_alive(engine: AnyEngine, clock: DatabaseClock) -> None:
    register(engine)
    assert bury(engine) == []


def judged_by_the_retired(engine: AnyEngine, clock: DatabaseClock) -> None:
    register(engine)
    judge = register(engine, lease_s=1e6)
    engine.run(store.retire(holder=judge))
    clock.advance(31)
    assert engine.run(store.die(judge=judge, until_us=LATE_US)) == []


def judged_by_the_late(engine: AnyEngine, clock: DatabaseClock) -> None:
    """Its own lease has run out as well: it is the network that was away, not the others."""
    judge, _ = register(engine), register(engine)
    clock.advance(31)
    assert engine.run(store.die(judge=judge, until_us=LATE_US)) == []


def judged_after_an_outage(engine: AnyEngine, clock: DatabaseClock) -> None:
    """The statement was held up; meanwhile its judge has renewed, and the others have not yet."""
    judge, _ = register(engine), register(engine)
    renewed = engine.run(store.renew(holder=judge))
    assert renewed is not None
    until_us = renewed.at_us + 12_500_000
    clock.advance(31)
    assert engine.run(store.renew(holder=judge))
    assert engine.run(store.die(judge=judge, until_us=until_us)) == []


def renewed_after_death(engine: AnyEngine, clock: DatabaseClock) -> None:
    holder = register(engine)
    clock.advance(31)
    bury(engine)
    assert not engine.run(store.renew(holder=holder))


def described_after_death(engine: AnyEngine, clock: DatabaseClock) -> None:
    holder = register(engine)
    assert engine.run(store.describe_worker(holder=holder, info='{"now":1}'))
    clock.advance(31)
    bury(engine)
    assert not engine.run(store.describe_worker(holder=holder, info='{"now":2}'))
    (row,) = [each for each in engine.run(store.list_workers()) if each.id == holder]
    assert row.info == {"now": 1}


def reclaimed_from_the_living(engine: AnyEngine, clock: DatabaseClock) -> None:
    running(engine)
    before = dump(engine)
    engine.run(store.reclaim([register(engine)], limit=10, actor=None))
    assert changed(before, dump(engine)) == set()


def cancelled_while_running(engine: AnyEngine, clock: DatabaseClock) -> None:
    assert not stage.cancel(engine, bring(engine, State.RUNNING))


def withdrew_what_never_ran(engine: AnyEngine, clock: DatabaseClock) -> None:
    job = new_job()
    assert engine.run(store.resubmit([job])) == [job.id]
    assert stage.state_of(engine, job.id) is State.QUEUED


def progress_went_back(engine: AnyEngine, clock: DatabaseClock) -> None:
    """A slow writer of an old attempt that got past the fence must not overwrite the newer word."""
    job = bring(engine, State.RUNNING)
    stage.rows(
        engine, f"INSERT INTO {{job_progress}} VALUES ('{job.id}', 9, 50, 'newer', {_instant(engine)})"
    )
    FENCED["progress"](engine, job)
    assert [row["note"] for row in stage.rows(engine, "SELECT note FROM {job_progress}")] == ["newer"]


def _instant(engine: AnyEngine) -> str:
    return "clock_timestamp()" if engine.dialect == "postgres" else "0"


GROUPS = ("succeed", "fail", "stop", "requeue", "suspend", "crash")
SCRIPTS = (
    "fail",
    "stop",
    "requeue",
    "suspend",
    "crash",
)  # on SQLite the event and the update are two statements of one script


# A job is due by the clock, or by the time that a worker carries on: both look at run_at.
CLOCKLESS_PG = (
    ("run_at <= (SELECT greatest(", "run_at + INTERVAL '-1 year' <= (SELECT greatest("),
    ('(run_at <= (SELECT "fencerow".now())', '(true OR run_at <= (SELECT "fencerow".now())'),
)
CLOCKLESS_LITE = (
    ("run_at <= (SELECT max(", "true OR run_at <= (SELECT max("),
    ("(run_at <= (SELECT fencerow_now())", "(true OR run_at <= (SELECT fencerow_now())"),
)


def always(*texts: str) -> Taken:
    return tuple((text, "true") for text in texts)


def never(*texts: str) -> Taken:
    return tuple((text, "false") for text in texts)


def fence(query: str) -> list[Guard]:
    """The two halves of a fence: who, and in which attempt."""
    row = "fencerow_jobs" if query in SCRIPTS else "job"
    attempt = "json_extract(o.value, '$.attempt')" if query in GROUPS else ":attempt"
    attempt_pg = "outcome.attempt" if query in GROUPS else "CAST(:attempt AS bigint)"
    return [
        Guard(
            query,
            always(f"job.attempt = {attempt_pg}"),
            always(f"{row}.attempt = {attempt}"),
            other_attempt(query),
        ),
        Guard(
            query,
            always("job.holder = CAST(:holder AS uuid)"),
            always(f"{row}.holder = :holder"),
            other_holder(query),
        ),
    ]


GUARDS = [
    *(guard for query in FENCED for guard in fence(query)),
    Guard(
        "claim",
        CLOCKLESS_PG,
        CLOCKLESS_LITE,
        claimed_before_due,
    ),
    Guard(
        "claim",
        never("queue.paused_at IS NOT NULL"),
        never("queue.paused_at IS NOT NULL"),
        claimed_while_paused,
    ),
    Guard("claim", always("worker.state = 'alive'"), always("worker.state = 'alive'"), claimed_by_the_dead),
    Guard(
        "claim",
        always('queued.expires_at > (SELECT "fencerow".now())'),
        always("queued.expires_at > fencerow_now()"),
        claimed_when_expired,
    ),
    Guard(
        "count_suspects",
        never("job.holder = CAST(:holder AS uuid)"),
        never("job.holder = :holder"),
        two_suspects_at_once,
    ),
    Guard(
        "requeue",
        always("job.cancel_requested_at IS NULL"),
        always("fencerow_jobs.cancel_requested_at IS NULL"),
        requeued_after_a_request,
    ),
    Guard(
        "suspend",
        always("job.cancel_requested_at IS NULL"),
        always("fencerow_jobs.cancel_requested_at IS NULL"),
        suspended_after_a_request,
    ),
    Guard("wake", always("job.gate IS NULL"), always("job.gate IS NULL"), woken_at_its_gate),
    Guard(
        "stop",
        always("job.cancel_requested_at IS NOT NULL"),
        always("fencerow_jobs.cancel_requested_at IS NOT NULL"),
        stopped_without_a_request,
    ),
    Guard(
        "die",
        always(
            "late.lease_until < (SELECT clock.now FROM clock)",
            "worker.lease_until < (SELECT clock.now FROM clock)",
        ),
        always("lease_until < fencerow_now()"),
        died_while_alive,
    ),
    Guard("die", always("judge.state = 'alive'"), always("judge.state = 'alive'"), judged_by_the_retired),
    Guard(
        "die",
        always("judge.lease_until > (SELECT clock.now FROM clock)"),
        always("judge.lease_until > fencerow_now()"),
        judged_by_the_late,
    ),
    Guard(
        "die",
        always('(SELECT clock.now FROM clock) < "fencerow".at(CAST(:until_us AS bigint))'),
        always("fencerow_now() < :until_us"),
        judged_after_an_outage,
    ),
    Guard("renew", always("worker.state = 'alive'"), always("state = 'alive'"), renewed_after_death),
    Guard(
        "describe_worker",
        always("worker.state = 'alive'"),
        always("state = 'alive'"),
        described_after_death,
    ),
    Guard(
        "reclaim",
        always("job.holder = ANY(CAST(:dead AS uuid[]))"),
        (
            ("job.holder IN (SELECT value FROM json_each(:dead))", "true"),
            ("fencerow_jobs.holder IN (SELECT value FROM json_each(:dead))", "true"),
        ),
        reclaimed_from_the_living,
    ),
    Guard(
        "cancel_idle",
        always("job.state IN ('waiting', 'queued')"),
        always("job.state IN ('waiting', 'queued')", "state IN ('waiting', 'queued')"),
        cancelled_while_running,
    ),
    Guard(
        "withdraw",
        always('EXISTS (SELECT 1 FROM "fencerow".finished_jobs AS finished WHERE finished.id = job.id)'),
        always(
            "id IN (SELECT finished.id FROM fencerow_finished_jobs AS finished\n"
            "              WHERE finished.id IN (SELECT value FROM json_each(:ids)))"
        ),
        withdrew_what_never_ran,
    ),
    Guard(
        "disown",
        (
            *always("queued.run_at <= (SELECT clock.since FROM clock)"),
            *always("job.run_at <= clock.since"),
        ),
        always("queued.run_at <= fencerow_now() - CAST(:age_s * 1000000 AS INTEGER)"),
        disowned_too_soon,
    ),
    Guard(
        "disown",
        (("late.name <> ALL(", "late.name || '?' <> ALL("),),
        (("name NOT IN (SELECT known", "name || '?' NOT IN (SELECT known"),),
        disowned_though_known('{"names": ["send"]}'),
    ),
    Guard(
        "disown",
        never("recent.names IS NULL"),
        never("json_type(CASE WHEN json_valid(worker.info) THEN worker.info END, '$.names') IS NULL"),
        disowned_though_known("{}"),
    ),
    Guard(
        "progress",
        always("known.attempt <= EXCLUDED.attempt"),
        always("known.attempt <= excluded.attempt"),
        progress_went_back,
    ),
]
NAMED = [pytest.param(guard, id=f"{guard.query}-{guard.postgres[0][0][:40]}") for guard in GUARDS]


@pytest.mark.parametrize("guard", NAMED)
def test_with_the_guard_the_scenario_holds(engine: AnyEngine, clock: DatabaseClock, guard: Guard) -> None:
    guard.scenario(engine, clock)
    guard.take_out(engine)  # it is still written so; the control plays what happens then


@pytest.mark.prove  # a control
@pytest.mark.parametrize("guard", NAMED)
def test_without_the_guard_the_scenario_turns_red(
    engine: AnyEngine, clock: DatabaseClock, guard: Guard
) -> None:
    guard.take_out(engine)
    with pytest.raises(AssertionError):
        guard.scenario(engine, clock)
