"""Workers die by a job of their own, or sleep through their lease; every promise still holds.

Many faults at once are in `tests/proof/storm`.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from fencerow.core.model.job import JobRecord
from fencerow.core.store import store
from fencerow.db.engine import Engine
from fencerow.operators import looking
from tests.core.worker.stage import job_of
from tests.kit.pace import LONG_LEASE_S, slower
from tests.kit.stopping import is_locked, is_stopped
from tests.whole.deaths.crew import crew, engine_of, live, wait_until

pytestmark = pytest.mark.timed

LEASE_S = slower(4.0)  # one that must end while the test looks on


@pytest.fixture
def place(kind: str, request: pytest.FixtureRequest) -> Iterator[tuple[str, Engine]]:
    """What a worker takes for its database, and an engine on it; closed whatever becomes of the test."""
    fixture = "sqlite_path" if kind == "sqlite" else "empty_postgres_url"
    target = str(request.getfixturevalue(fixture))
    with closing(engine_of(target)) as engine:
        store.migrate(engine)
        yield target, engine


def records(engine: Engine, ids: list[str]) -> dict[str, JobRecord]:
    found: dict[str, JobRecord] = {}
    for at in range(0, len(ids), 500):
        part = engine.run(store.read(ids[at : at + 500]))
        found.update(part)
    return found


@pytest.mark.prove
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_job_that_kills_its_process_fails_alone(
    kind: str, tmp_path: Path, place: tuple[str, Engine]
) -> None:
    target, engine = place
    poison = job_of("killer", attempts_max=50, crashes_max=2)
    healthy = [job_of("quick") for _ in range(40)]
    engine.run(store.submit([*healthy[:20], poison, *healthy[20:]]))
    with crew(target, tmp_path, 1, LONG_LEASE_S) as team:

        def over() -> bool:
            team.keep(1, engine)
            return live(engine) == 0

        wait_until(over, team.tail)
    found = records(engine, [poison.id, *(job.id for job in healthy)])

    dead = found.pop(poison.id)
    assert (dead.state, dead.crashes, dead.error["type"]) == ("failed", 2, "CrashBudgetSpent")
    assert dead.attempt == 3  # the first death only makes it suspect
    assert {(job.state, job.crashes) for job in found.values()} == {("succeeded", 0)}


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_worker_that_slept_through_its_lease_changes_nothing(
    kind: str, tmp_path: Path, place: tuple[str, Engine]
) -> None:
    target, engine = place
    job = job_of("sleeper", {"seconds": 1.5 * LEASE_S})
    engine.run(store.submit([job]))
    with crew(target, tmp_path, 1, LEASE_S) as team:
        wait_until(lambda: records(engine, [job.id])[job.id].state == "running", team.tail)
        (asleep,) = team.alive()
        put_to_sleep(asleep, target)
        team.start()
        wait_until(lambda: live(engine) == 0, team.tail)
        second = records(engine, [job.id])[job.id]
        asleep.send_signal(signal.SIGCONT)
        # It has come to itself when it has run something else.
        wait_until(lambda: "declared dead" in team.tail(200), team.tail)
        wait_until(lambda: "lost its lease" in team.tail(200) or "over for us" in team.tail(200), team.tail)
        assert asleep.poll() is None
        third = records(engine, [job.id])[job.id]

    assert (second.state, second.attempt, second.result) == ("succeeded", 2, "attempt 2")
    assert third == second


@pytest.mark.prove
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_where_nobody_lives_the_time_counts_from_the_start_of_the_next_worker(
    kind: str, tmp_path: Path, place: tuple[str, Engine]
) -> None:
    target, engine = place
    job = job_of("sleeper", {"seconds": 600})
    engine.run(store.submit([job]))
    with crew(target, tmp_path, 1, LEASE_S) as team:
        wait_until(lambda: records(engine, [job.id])[job.id].state == "running", team.tail)
        (only,) = team.alive()
        only.kill()
        only.wait()
        wait_until(lambda: lease_left_us(engine) < 0, team.tail)
        team.start()
        wait_until(lambda: live(engine) == 0, team.tail)
    ended = records(engine, [job.id])[job.id]
    (reclaimed,) = [each for each in engine.run(looking.events(job.id)) if each.kind == "reclaimed"]
    born_us = max(each.registered_at_us for each in engine.run(store.list_workers()))

    assert (ended.state, ended.attempt, ended.crashes) == ("succeeded", 2, 0)
    assert (reclaimed.at_us - born_us) / 1e6 >= LEASE_S, (
        "whoever is new judges nobody before a lease of its own"
    )


def put_to_sleep(member: subprocess.Popen[bytes], target: str) -> None:
    """Stop it where it holds no lock of a file: one that does stops everybody, and nobody can take over."""
    while True:
        member.send_signal(signal.SIGSTOP)
        wait_until(lambda: is_stopped(member.pid), lambda: "it does not stop")
        if target.startswith("postgresql:") or not is_locked(target):
            return
        member.send_signal(signal.SIGCONT)


def lease_left_us(engine: Engine) -> int:
    return max(each.lease_until_us - each.now_us for each in engine.run(store.list_workers()))
