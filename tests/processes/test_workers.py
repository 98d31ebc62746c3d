"""Whole workers die under a job: it is found out in a child and ends failed; the others lose one attempt at most."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from fencerow.core.db.engine import Engine
from fencerow.core.model.job import JobRecord
from fencerow.core.store import store
from fencerow.core.store.reap import DEATHS_PER_CRASH
from tests.core.worker.stage import job_of
from tests.processes.test_children import gone
from tests.processes.test_poison import known
from tests.whole.deaths.crew import Crew, crew, engine_of, live, wait_until

MEMBER = Path(__file__).with_name("member.py")
QUICK = '{"base_s":0.01,"factor":1.0,"cap_s":1.0,"jitter":0.0}'
LEASE_S = 1.0


def target_of(kind: str, request: pytest.FixtureRequest) -> str:
    fixture = "sqlite_path" if kind == "sqlite" else "empty_postgres_url"
    return str(request.getfixturevalue(fixture))


def nothing_left(folder: Path, team: Crew) -> None:
    wait_until(lambda: all(gone(pid) for pid in known(folder)), 60, team.tail)


def records(engine: Engine, ids: list[str]) -> dict[str, JobRecord]:
    return engine.run(store.read(ids))


def keep_manned(team: Crew, size: int) -> int:
    """As a supervisor does; returns how many had died."""
    missing = size - len(team.alive())
    for _ in range(missing):
        team.start()
    return missing


@pytest.mark.parametrize(("kind", "name"), [("sqlite", "ordinary"), ("postgres", "aordinary")])
def test_a_job_that_ends_its_worker_is_found_out_in_a_child(
    kind: str, name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    target = target_of(kind, request)
    engine = engine_of(target)
    store.migrate(engine)
    how = {"ordinary": "exit", "aordinary": "sigkill"}[name]
    poison = job_of(name, {"kind": how, "folder": str(tmp_path)}, crashes_max=2, options=QUICK)
    healthy = [job_of("healthy") for _ in range(60)]
    engine.run(store.submit([*healthy[:30], poison, *healthy[30:]]))
    with crew(target, tmp_path, 2, LEASE_S, MEMBER) as team:
        died = 0

        def over() -> bool:
            nonlocal died
            died += keep_manned(team, 2)
            return live(engine) == 0

        wait_until(over, 90, team.tail)
        dead = records(engine, [poison.id])[poison.id]
        others = Counter(
            (job.state, job.attempt) for job in records(engine, [j.id for j in healthy]).values()
        )
        nothing_left(tmp_path, team)
    engine.close()

    assert died == 1, "only the first attempt may take a worker along"
    assert (dead.state, dead.attempt, dead.crashes) == ("failed", 3, 2), team.tail()
    assert dead.error["code"] == "crashes_exhausted"
    assert "its child process" in dead.error["message"]
    assert set(others) <= {("succeeded", 1), ("succeeded", 2)}
    assert len(known(tmp_path)) == 3


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("kind", "poisons"),
    [
        ("sqlite", [("ordinary", "sigsegv"), ("aordinary", "abort")]),
        ("postgres", [("ordinary", "exit"), ("aordinary", "stack")]),
    ],
)
def test_several_that_end_their_worker_are_found_out_among_many_that_do_not(
    kind: str, poisons: list[tuple[str, str]], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Each takes one worker along at most; a healthy job loses an attempt with each of those, and nothing else."""
    target = target_of(kind, request)
    engine = engine_of(target)
    store.migrate(engine)
    poison = [
        job_of(name, {"kind": how, "folder": str(tmp_path)}, crashes_max=1, options=QUICK)
        for name, how in poisons
    ]
    healthy = [job_of("healthy") for _ in range(200)]
    engine.run(store.submit([*healthy[:50], poison[0], *healthy[50:100], poison[1], *healthy[100:]]))
    with crew(target, tmp_path, 2, LEASE_S, MEMBER) as team:
        died = 0

        def over() -> bool:
            nonlocal died
            died += keep_manned(team, 2)
            return live(engine) == 0

        wait_until(over, 180, team.tail)
        dead = records(engine, [job.id for job in poison])
        others = records(engine, [job.id for job in healthy])
        nothing_left(tmp_path, team)
    engine.close()

    assert 1 <= died <= len(poison)
    for job in dead.values():
        assert (job.state, job.crashes, job.error["code"]) == ("failed", 1, "crashes_exhausted"), team.tail()
        assert "its child process" in job.error["message"]
    assert {(job.state, job.failures, job.crashes) for job in others.values()} == {("succeeded", 0, 0)}
    assert max(job.attempt for job in others.values()) <= 1 + died


def test_a_job_that_kills_the_worker_from_its_child_ends_at_last(tmp_path: Path, sqlite_path: Path) -> None:
    engine = engine_of(str(sqlite_path))
    store.migrate(engine)
    poison = job_of("poisonous", {"kind": "worker", "folder": str(tmp_path)}, crashes_max=1)
    engine.run(store.submit([poison]))
    with crew(str(sqlite_path), tmp_path, 1, LEASE_S, MEMBER) as team:
        died = 0

        def over() -> bool:
            nonlocal died
            died += keep_manned(team, 1)
            return live(engine) == 0

        wait_until(over, 120, team.tail)
        nothing_left(tmp_path, team)
    dead = records(engine, [poison.id])[poison.id]
    engine.close()

    assert (dead.state, dead.crashes, dead.attempt) == ("failed", 0, DEATHS_PER_CRASH)
    assert f"{DEATHS_PER_CRASH} workers in a row died" in dead.error["message"]
    assert died >= DEATHS_PER_CRASH


def test_children_and_all_they_have_started_die_with_their_worker(tmp_path: Path, sqlite_path: Path) -> None:
    engine = engine_of(str(sqlite_path))
    store.migrate(engine)
    away = {"folder": str(tmp_path / "away"), "how": "daemon", "end": "hang"}
    (tmp_path / "away").mkdir()
    engine.run(
        store.submit(
            [
                job_of("hangs", {"folder": str(tmp_path), "how": "ignores"}),
                *([job_of("lets_one_run_away", away)] if sys.platform == "linux" else []),
            ]
        )
    )
    with crew(str(sqlite_path), tmp_path, 1, LEASE_S, MEMBER) as team:
        wait_until(lambda: len(known(tmp_path)) == 2, 60, team.tail)
        wait_until(lambda: sys.platform != "linux" or len(known(tmp_path / "away")) == 2, 60, team.tail)
        assert not any(gone(pid) for pid in known(tmp_path))
        (worker,) = team.alive()
        worker.kill()
        worker.wait(60)
        nothing_left(tmp_path, team)
        nothing_left(tmp_path / "away", team)
    engine.close()
