"""Whole workers die under a job: it is found out in a child and ends failed; the others lose one attempt at most."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from fencerow.core.model.job import JobRecord
from fencerow.core.store import store
from fencerow.core.store.reap import DEATHS_PER_CRASH
from fencerow.db.engine import Engine
from tests.core.worker.stage import job_of
from tests.kit.pace import LONG_LEASE_S
from tests.processes.test_children import gone
from tests.processes.test_poison import known
from tests.whole.deaths.crew import Crew, crew, engine_of, live, wait_until

MEMBER = Path(__file__).with_name("member.py")
QUICK = '{"base_s":0.01,"factor":1.0,"cap_s":1.0,"jitter":0.0}'
on_sqlite = pytest.mark.parametrize("kind", ["sqlite"])


@pytest.fixture
def place(kind: str, request: pytest.FixtureRequest) -> Iterator[tuple[str, Engine]]:
    """What a worker takes for its database, and an engine on it; closed whatever becomes of the test."""
    fixture = "sqlite_path" if kind == "sqlite" else "empty_postgres_url"
    target = str(request.getfixturevalue(fixture))
    with closing(engine_of(target)) as engine:
        store.migrate(engine)
        yield target, engine


def nothing_left(folder: Path, team: Crew) -> None:
    wait_until(lambda: all(gone(pid) for pid in known(folder)), team.tail)


def records(engine: Engine, ids: list[str]) -> dict[str, JobRecord]:
    return engine.run(store.read(ids))


@pytest.mark.parametrize(
    ("kind", "name"),
    [("sqlite", "ordinary"), pytest.param("postgres", "aordinary", marks=pytest.mark.prove)],
)
def test_a_job_that_ends_its_worker_is_found_out_in_a_child(
    kind: str, name: str, tmp_path: Path, place: tuple[str, Engine]
) -> None:
    target, engine = place
    how = {"ordinary": "exit", "aordinary": "sigkill"}[name]
    poison = job_of(name, {"kind": how, "folder": str(tmp_path)}, crashes_max=2, options=QUICK)
    healthy = [job_of("healthy") for _ in range(60)]
    engine.run(store.submit([*healthy[:30], poison, *healthy[30:]]))
    with crew(target, tmp_path, 2, LONG_LEASE_S, MEMBER) as team:
        died = 0

        def over() -> bool:
            nonlocal died
            died += team.keep(2, engine)
            return live(engine) == 0

        wait_until(over, team.tail)
        dead = records(engine, [poison.id])[poison.id]
        others = Counter(
            (job.state, job.attempt) for job in records(engine, [j.id for j in healthy]).values()
        )
        nothing_left(tmp_path, team)

    assert died == 1, "only the first attempt may take a worker along"
    assert (dead.state, dead.attempt, dead.crashes) == ("failed", 3, 2), team.tail()
    assert dead.error["code"] == "crashes_exhausted"
    assert "its child process" in dead.error["message"]
    assert set(others) <= {("succeeded", 1), ("succeeded", 2)}
    assert len(known(tmp_path)) == 3


@pytest.mark.prove
@pytest.mark.parametrize(
    ("kind", "poisons"),
    [
        ("sqlite", [("ordinary", "sigsegv"), ("aordinary", "abort")]),
        ("postgres", [("ordinary", "exit"), ("aordinary", "stack")]),
    ],
)
def test_several_that_end_their_worker_are_found_out_among_many_that_do_not(
    kind: str, poisons: list[tuple[str, str]], tmp_path: Path, place: tuple[str, Engine]
) -> None:
    """Each takes one worker along at most; a healthy job loses an attempt with each of those, and nothing else."""
    target, engine = place
    poison = [
        job_of(name, {"kind": how, "folder": str(tmp_path)}, crashes_max=1, options=QUICK)
        for name, how in poisons
    ]
    healthy = [job_of("healthy") for _ in range(200)]
    engine.run(store.submit([*healthy[:50], poison[0], *healthy[50:100], poison[1], *healthy[100:]]))
    with crew(target, tmp_path, 2, LONG_LEASE_S, MEMBER) as team:
        died = 0

        def over() -> bool:
            nonlocal died
            died += team.keep(2, engine)
            return live(engine) == 0

        wait_until(over, team.tail)
        dead = records(engine, [job.id for job in poison])
        others = records(engine, [job.id for job in healthy])
        nothing_left(tmp_path, team)

    assert 1 <= died <= len(poison)
    for job in dead.values():
        assert (job.state, job.crashes, job.error["code"]) == ("failed", 1, "crashes_exhausted"), team.tail()
        assert "its child process" in job.error["message"]
    assert {(job.state, job.failures, job.crashes) for job in others.values()} == {("succeeded", 0, 0)}
    assert max(job.attempt for job in others.values()) <= 1 + died


@pytest.mark.prove
@on_sqlite
def test_a_job_that_kills_the_worker_from_its_child_ends_at_last(
    tmp_path: Path, place: tuple[str, Engine]
) -> None:
    target, engine = place
    poison = job_of("poisonous", {"kind": "worker", "folder": str(tmp_path)}, crashes_max=1)
    engine.run(store.submit([poison]))
    with crew(target, tmp_path, 1, LONG_LEASE_S, MEMBER) as team:
        died = 0

        def over() -> bool:
            nonlocal died
            died += team.keep(1, engine)
            return live(engine) == 0

        wait_until(over, team.tail)
        nothing_left(tmp_path, team)
    dead = records(engine, [poison.id])[poison.id]

    assert (dead.state, dead.crashes, dead.attempt) == ("failed", 0, DEATHS_PER_CRASH)
    assert f"{DEATHS_PER_CRASH} workers in a row died" in dead.error["message"]
    assert died >= DEATHS_PER_CRASH


@on_sqlite
def test_children_and_all_they_have_started_die_with_their_worker(
    tmp_path: Path, place: tuple[str, Engine]
) -> None:
    target, engine = place
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
    with crew(target, tmp_path, 1, LONG_LEASE_S, MEMBER) as team:
        wait_until(lambda: len(known(tmp_path)) == 2, team.tail)
        wait_until(lambda: sys.platform != "linux" or len(known(tmp_path / "away")) == 2, team.tail)
        assert not any(gone(pid) for pid in known(tmp_path))
        (worker,) = team.alive()
        worker.kill()
        worker.wait(60)
        nothing_left(tmp_path, team)
        nothing_left(tmp_path / "away", team)
