"""What an operator is told of jobs that wait for a label: by `why`, `doctor`, `jobs show` and `workers`."""

from __future__ import annotations

import json

import pytest

from fencerow.core.finding import Finding
from fencerow.core.model.ids import new_id
from fencerow.core.model.worker import WorkerRecord
from fencerow.core.store import store
from fencerow.doctor.affinity import examine_labels
from fencerow.doctor.backlog import living
from fencerow.doctor.examine import with_queries
from fencerow.doctor.why import why
from fencerow.testing.clock import DatabaseClock
from fencerow.turns import affinity
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.kit import jobs
from tests.kit.jobs import AnyEngine

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures


def carrying(engine: AnyEngine, *labels: str, queue: str = "mail") -> None:
    """A living worker with these labels."""
    info = {"queues": [queue], "names": ["send"], "slots": 1, "labels": labels}
    engine.run(
        store.register(holder=new_id(), name="w", host="h", pid=1, info=json.dumps(info), lease_s=3600.0)
    )


def told(engine: AnyEngine, job_id: str) -> str:
    return engine.run(why(job_id)).summary


def found(engine: AnyEngine) -> list[Finding]:
    with_queries(engine)
    return list(examine_labels(engine, living(engine)))


def test_why_tells_for_which_label_a_job_waits_and_until_when(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    ever, lent = jobs.submit(
        engine, jobs.new_job(affinity="gpu"), jobs.new_job(affinity="gpu", affinity_wait_s=90.0)
    )
    carrying(engine, "other")
    carrying(engine, "gpu", queue="else")

    assert told(engine, ever) == (
        "it waits for a worker with the label gpu; living ones that would take it: 0; nobody else ever takes it. "
        "Start `fencerow worker --label gpu`"
    )
    assert "; in 1 min 30 s anybody may. Start" in told(engine, lent)
    clock.advance(91)
    assert "its wait is over: a worker gives it to anybody within a moment" in told(engine, lent)

    carrying(engine, "gpu")
    assert told(engine, ever).startswith("every condition holds")
    engine.run(affinity.fall_back(actor="w"))
    assert told(engine, lent).startswith("every condition holds")


def test_doctor_finds_labels_that_nobody_carries_where_jobs_wait_for_ever(engine: AnyEngine) -> None:
    jobs.submit(
        engine,
        jobs.new_job(affinity="gpu"),
        jobs.new_job(affinity="gpu"),
        jobs.new_job(affinity="gpu", affinity_wait_s=5.0),
        jobs.new_job(affinity="big", affinity_wait_s=5.0),
    )
    carrying(engine, "gpu", queue="else")
    (finding,) = found(engine)
    assert "2 jobs of queue mail may be taken by workers with the label gpu only" in finding.found

    carrying(engine, "gpu")
    assert found(engine) == []


def test_doctor_asks_each_worker_once_however_many_labels_there_are(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.submit(engine, *(jobs.new_job(affinity=f"label-{each}") for each in range(20)))
    for _ in range(5):
        carrying(engine, "label-3")
    asked: list[WorkerRecord] = []

    def labels(worker: WorkerRecord) -> frozenset[str]:
        asked.append(worker)
        return frozenset(worker.info["labels"])

    monkeypatch.setattr(WorkerRecord, "labels", property(labels))

    assert len(found(engine)) == 5
    assert len(asked) == 5


def test_labels_are_shown_of_jobs_and_workers(cli: Cli, url: str, engine: AnyEngine) -> None:
    ever, lent = jobs.submit(
        engine, jobs.new_job(affinity="gpu"), jobs.new_job(affinity="gpu", affinity_wait_s=90.0)
    )
    carrying(engine, "gpu", "big")

    assert "gpu, and nobody else" in cli("jobs", "show", ever).out
    assert "gpu, after 90 s anybody" in cli("jobs", "show", lent).out
    assert cli("jobs", "list", "--json").json[0]["affinity"] == "gpu"
    assert cli("workers", "list", "--json").json[0]["labels"] == ["big", "gpu"]
    assert "big,gpu" in cli("workers", "list").out
    assert "big, gpu" in cli("workers", "show", "w").out
