"""What a database knows of its jobs fills in what a plan leaves out; on both engines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.planning.measured import filled_in, measure
from fencerow.planning.reading import understood
from fencerow.testing.clock import clock_of
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.kit import jobs
from tests.planning.plans import written_of

AnyEngine = SqliteEngine | PostgresEngine
cli, url = command_line.cli, command_line.url  # fixtures


def ended(engine: AnyEngine, *runs: tuple[int, float, float]) -> None:
    """So many jobs of a duration have succeeded, one after the other, one in so many seconds.

    What the machine takes for that is added to both: take minutes.
    """
    clock = clock_of(engine)
    holder = jobs.register(engine, lease_s=1e6)
    for count, took_s, every_s in runs:
        for _ in range(count):
            job = jobs.running(engine, holder)
            clock.advance(took_s)
            engine.run(store.succeed([store.Success(job.id, job.attempt, "null")], holder=holder))
            clock.advance(every_s - took_s)


def test_durations_and_rates_are_those_of_jobs_that_ended(engine: AnyEngine) -> None:
    ended(engine, (19, 60, 3600), (1, 1200, 3600))
    plan = written_of({"workers": {"slots": 1}, "jobs": {"send": {}}})

    (job,) = understood(filled_in(plan, engine.run(measure()))).jobs

    assert float(job.mean_s) == pytest.approx(60 * 39 / 20, rel=0.05)
    assert float(job.p95_s) == pytest.approx(60 * 39 / 20, rel=0.05), "no p95 below the mean"
    assert float(job.rate_per_hour) == pytest.approx(1, rel=0.1)
    assert job.failure_share == 0


def test_of_many_jobs_the_newest_are_looked_at_and_their_time_counts(engine: AnyEngine) -> None:
    ended(engine, (5, 540, 600), (5, 60, 36_000))

    found = engine.run(measure(5))

    assert found.jobs["send"].jobs == 5
    assert found.jobs["send"].at_share_s(0.95) == pytest.approx(60, abs=30)
    assert found.span_s == pytest.approx(5 * 36_000, rel=0.1)


def test_failed_attempts_count(engine: AnyEngine) -> None:
    ended(engine, (1, 1, 60))
    holder = jobs.register(engine)
    broken = jobs.running(engine, holder)
    engine.run(store.fail([store.Failure(broken.id, broken.attempt, '{"type":"E"}')], holder=holder))

    assert engine.run(measure()).jobs["send"].failure_share == 0.5


def test_a_failure_from_before_the_time_that_was_looked_at_does_not_count(engine: AnyEngine) -> None:
    clock, holder = clock_of(engine), jobs.register(engine, lease_s=1e6)
    for number in range(6):
        job = jobs.running(engine, holder)
        if number == 0:
            engine.run(store.fail([store.Failure(job.id, job.attempt, '{"type":"E"}')], holder=holder))
        else:
            engine.run(store.succeed([store.Success(job.id, job.attempt, "null")], holder=holder))
        clock.advance(60)

    assert engine.run(measure(5)).jobs[jobs.NAME].failure_share == 0
    assert engine.run(measure(6)).jobs[jobs.NAME].failure_share == pytest.approx(1 / 6)


def test_what_the_plan_says_stays_and_entities_share_the_rate(engine: AnyEngine) -> None:
    ended(engine, (10, 60, 2160))
    said: dict[str, Any] = {"send": {"key": "account", "duration_s": 7}}
    plan = written_of({"workers": {"slots": 1}, "keys": {"account": {"entities": 10}}, "jobs": said})

    (job,) = understood(filled_in(plan, engine.run(measure()))).jobs

    assert job.mean_s == 7
    assert float(job.rate_per_hour) == pytest.approx(10 / 60, rel=0.2)


def test_the_command_says_what_it_found(cli: Cli, url: str, engine: AnyEngine) -> None:
    ended(engine, (10, 1800, 3600))
    Path("plan.json").write_text(json.dumps({"workers": {"slots": 1}, "jobs": {"send": {}}}), "utf-8")

    found = cli("plan", "plan.json", "--measured", "--json").json

    assert found["bounds"][0]["load"] == pytest.approx(30, rel=0.15)


def test_a_job_that_never_ended_is_refused(cli: Cli, url: str, engine: AnyEngine) -> None:
    Path("plan.json").write_text(json.dumps({"workers": {"slots": 1}, "jobs": {"sned": {}}}), "utf-8")

    done = cli("plan", "plan.json", "--measured")

    assert (done.code, done.error) == (1, "FR-841")
    assert "no job sned was among the newest that have ended" in done.err
