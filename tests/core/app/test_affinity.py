"""`affinity=`: said of a job or of one submit, or computed from the arguments; and what it cannot stand beside."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fencerow import App, Config
from fencerow.core.errors import ConfigError, DeclarationError, InvalidInput
from fencerow.operators import looking


def nothing() -> None: ...


def test_a_label_is_said_or_computed_with_its_wait(app: App) -> None:

    @app.job(affinity=lambda pages, **others: "big" if pages > 100 else None, affinity_wait_s=60)
    def render(pages: int, colour: bool = True) -> None: ...

    @app.job(affinity="gpu")
    def train() -> None: ...

    handles = [
        render.submit(500),
        render.submit(5),
        render.using(affinity="gpu", affinity_wait_s=timedelta(minutes=2)).submit(5),
        *app.submit_many([train.call() for _ in range(2)]),
    ]
    found = [app.client.get(handle.id) for handle in handles]
    assert [(job.state.value, job.affinity, job.affinity_wait_s) for job in found] == [
        ("queued", "big", 60.0),
        ("queued", None, None),
        ("queued", "gpu", 120.0),
        ("queued", "gpu", None),
        ("queued", "gpu", None),
    ]


def test_what_cannot_be_kept_is_refused_at_the_door(app: App) -> None:
    @app.job
    def plain(n: int) -> None: ...

    with pytest.raises(InvalidInput, match="affinity_wait_s was given without affinity"):
        plain.using(affinity_wait_s=5)
    for bad in ("", "a,b", " gpu", "x" * 101):
        with pytest.raises(InvalidInput):
            plain.using(affinity=bad)
    for seconds in (0, -1, float("nan"), 1e12):
        with pytest.raises(InvalidInput):
            plain.using(affinity="gpu", affinity_wait_s=seconds)
    with pytest.raises(InvalidInput, match=r"affinity= of .*plain raised ZeroDivisionError"):
        plain.using(affinity=lambda **_: str(1 / 0)).submit(1)
    with pytest.raises(InvalidInput, match="the label in affinity= is 'a,b'"):
        plain.using(affinity=lambda **_: "a,b").submit(1)
    with pytest.raises(DeclarationError, match=r"affinity= of .*other cannot be called"):

        @app.job(affinity=lambda label: label)
        def other(n: int) -> None: ...

    app.check_or_create()
    assert app.engine.run(looking.counts()) == []


def test_a_worker_carries_the_labels_that_it_is_given_or_those_of_the_settings(app: App) -> None:
    app.job(name="one")(nothing)
    assert app.worker(labels=["gpu", "big", "gpu"]).config.labels == "gpu,big"
    assert app.worker(labels="gpu").config.labels == "gpu"
    assert app.worker().config.labels is None
    assert app.worker(labels=[]).config.labels is None
    with pytest.raises(InvalidInput, match="a label of the worker"):
        app.worker(labels=["a,b"])
    with pytest.raises(InvalidInput, match="21 labels"):
        app.worker(labels=[f"l{number}" for number in range(21)])
    assert Config(labels="gpu, big").labels == "gpu, big"
    with pytest.raises(ConfigError, match="labels"):
        Config(labels="gpu,,big")


def test_a_schedule_carries_affinity_and_may_queue_with_it(app: App) -> None:
    @app.job(affinity="gpu", affinity_wait_s=5)
    def train() -> None: ...

    app.schedules.put("nightly", train, interval_s=60)
    (ran,) = app.schedules.run("nightly")
    job = app.client.get(str(ran.job_id))
    assert (job.state.value, job.affinity, job.affinity_wait_s) == ("queued", "gpu", 5.0)
    app.schedules.put("in a row", train, interval_s=60, overlap="queue")
    (ran,) = app.schedules.run("in a row")
    job = app.client.get(str(ran.job_id))
    assert (job.state.value, job.affinity) == ("waiting", "gpu") and job.gate is not None
