"""Workers are killed, stopped for longer than their lease, and their database crashes; every promise still holds.

FENCEROW_STORM_JOBS makes the storm longer (2,000 jobs by default).
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from fencerow.db.engine import Engine
from fencerow.model.job import JobRecord
from fencerow.store import store
from fencerow.testing.postgres import PostgresServer
from tests.processes.crew import Crew, crew, engine_of, live, wait_until
from tests.worker.stage import job_of

JOBS = int(os.environ.get("FENCEROW_STORM_JOBS", "2000"))
LEASE_S = 2.0
NAMES = ("effect", "effect_plain", "quick", "quick", "shaky")


def prepare(engine: Engine) -> None:
    table = "fencerow.effect" if engine.dialect == "postgres" else "fencerow_effect"
    with engine.session() as session:
        session.connection.execute(f"CREATE TABLE {table} (job text)")


def effects(engine: Engine) -> Counter[str]:
    table = "fencerow.effect" if engine.dialect == "postgres" else "fencerow_effect"
    with engine.session() as session:
        return Counter(
            str(row[0]) for row in session.connection.execute(f"SELECT job FROM {table}").fetchall()
        )


def submit_all(engine: Engine, count: int) -> dict[str, str]:
    # A storm may kill a worker more often than a job's own budget expects; what is tested is not the budget.
    jobs = [job_of(NAMES[number % len(NAMES)], attempts_max=50, crashes_max=50) for number in range(count)]
    for at in range(0, count, 500):
        engine.run(store.submit(jobs[at : at + 500]))
    return {job.id: job.name for job in jobs}


def records(engine: Engine, ids: list[str]) -> dict[str, JobRecord]:
    found: dict[str, JobRecord] = {}
    for at in range(0, len(ids), 500):
        part = engine.run(store.read(ids[at : at + 500]))
        found.update(part)
    return found


def check(engine: Engine, names: dict[str, str]) -> None:
    """One final state each, effects once, and as many attempts as claims that were accounted for."""
    found = records(engine, list(names))
    assert set(found) == set(names)
    assert {job.state for job in found.values()} == {"succeeded"}
    written = effects(engine)
    wanted = {job_id for job_id, name in names.items() if name.startswith("effect")}
    assert set(written) == wanted
    assert set(written.values()) == {1}
    assert all(job.attempt >= 1 + job.failures for job in found.values())
    repeated = [job for job in found.values() if job.attempt > 1]
    for job in random.Random(0).sample(repeated, min(60, len(repeated))):
        ended = [each.attempt for each in engine.run(store.events(job.id)) if each.kind in ENDINGS]
        # Each claim but the last, which succeeded, ended in exactly one way; succeeding writes no line.
        assert sorted(ended) == list(range(1, job.attempt)), (job.id, job.attempt, ended)


ENDINGS = ("retried", "snoozed", "released", "reclaimed", "timed_out", "failed", "stopped")


def harass(team: Crew, engine: Engine, faults: Counter[str], until_below: int) -> None:
    """SIGKILL one worker after the other, and stop one for longer than its lease, until few jobs are left."""
    stopped_until = 0.0
    stopped = None
    while live(engine) > until_below:
        time.sleep(0.7)
        if stopped is None and faults["stop"] < 1 + faults["kill"] // 4:
            stopped = team.alive()[0]
            stopped.send_signal(signal.SIGSTOP)
            stopped_until = time.monotonic() + LEASE_S * 1.8
        elif stopped is not None and time.monotonic() > stopped_until:
            stopped.send_signal(signal.SIGCONT)
            stopped = None
            faults["stop"] += 1
        else:
            victim = next((each for each in team.alive() if each is not stopped), None)
            if victim is not None:
                team.kill(victim)
                faults["kill"] += 1
            team.start()
        if faults["kill"] + faults["stop"] > JOBS // 100:
            break
    if stopped is not None:
        stopped.send_signal(signal.SIGCONT)
    while len(team.alive()) < 3:
        team.start()


@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_storm_loses_nothing_and_does_nothing_twice(
    kind: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    fronted: Callable[[PostgresServer, str], str],
) -> None:
    faults: Counter[str] = Counter()
    if kind == "sqlite":
        target = str(request.getfixturevalue("sqlite_path"))
        _storm(target, tmp_path, faults, None)
    else:
        with PostgresServer(fast=True) as server:
            _storm(fronted(server, server.create_role_and_schema()), tmp_path, faults, server)
            assert faults["crash"] == 1
    assert faults["kill"] >= 3 and faults["stop"] >= 1, faults


def _storm(target: str, tmp_path: Path, faults: Counter[str], server: PostgresServer | None) -> None:
    engine = engine_of(target)
    store.migrate(engine)
    prepare(engine)
    with crew(target, tmp_path, 3, LEASE_S) as team:
        names = submit_all(engine, JOBS // 2)
        harass(team, engine, faults, JOBS // 10)
        names |= submit_all(engine, JOBS - JOBS // 2)
        if server is not None:
            wait_until(lambda: live(engine) < JOBS // 2, 60, team.tail)
            server.stop("immediate")
            faults["crash"] += 1
            server.start()
        harass(team, engine, faults, JOBS // 10)
        wait_until(lambda: live(engine) == 0, 60, lambda: f"{live(engine)} jobs left\n{team.tail()}")
        check(engine, names)
    engine.close()
    assert not [member.pid for member in team.alive()]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_job_that_kills_its_process_fails_alone(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    fixture = "sqlite_path" if kind == "sqlite" else "empty_postgres_url"
    target = str(request.getfixturevalue(fixture))
    engine = engine_of(target)
    store.migrate(engine)
    prepare(engine)
    poison = job_of("killer", attempts_max=50, crashes_max=2)
    healthy = [job_of("quick") for _ in range(40)]
    engine.run(store.submit([*healthy[:20], poison, *healthy[20:]]))
    with crew(target, tmp_path, 1, lease_s=1.0) as team:
        deadline = time.monotonic() + 60
        while live(engine):
            assert time.monotonic() < deadline, team.tail()
            if not team.alive():
                team.start()
            time.sleep(0.05)
    found = records(engine, [poison.id, *(job.id for job in healthy)])
    engine.close()

    dead = found.pop(poison.id)
    assert (dead.state, dead.crashes, dead.error["type"]) == ("failed", 2, "CrashBudgetSpent")
    assert dead.attempt == 3  # the first death only makes it suspect
    assert {(job.state, job.crashes) for job in found.values()} == {("succeeded", 0)}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_worker_that_slept_through_its_lease_changes_nothing(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    fixture = "sqlite_path" if kind == "sqlite" else "empty_postgres_url"
    target = str(request.getfixturevalue(fixture))
    engine = engine_of(target)
    store.migrate(engine)
    prepare(engine)
    job = job_of("sleeper", {"seconds": 1.5})
    engine.run(store.submit([job]))
    with crew(target, tmp_path, 1, lease_s=1.0) as team:
        wait_until(lambda: records(engine, [job.id])[job.id].state == "running", 15, team.tail)
        (asleep,) = team.alive()
        asleep.send_signal(signal.SIGSTOP)
        team.start()
        wait_until(lambda: live(engine) == 0, 20, team.tail)
        second = records(engine, [job.id])[job.id]
        asleep.send_signal(signal.SIGCONT)
        # It has come to itself when it has run something else.
        wait_until(lambda: "declared dead" in team.tail(200), 20, team.tail)
        wait_until(
            lambda: "lost its lease" in team.tail(200) or "over for us" in team.tail(200), 20, team.tail
        )
        assert asleep.poll() is None
        third = records(engine, [job.id])[job.id]
    engine.close()

    assert (second.state, second.attempt, second.result) == ("succeeded", 2, "attempt 2")
    assert third == second
