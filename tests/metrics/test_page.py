"""The page that a scrape gets, of a worker at work; and what there is without the extra."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fencerow.app import App
from fencerow.core.errors import Unavailable
from fencerow.errors import MissingExtra
from fencerow.metrics import Metrics, looking
from fencerow.metrics.names import METRICS
from tests.kit.pace import PATIENCE_S


def app_on(path: Path) -> App:
    app = App(f"sqlite:///{path}")

    @app.job(queue="mail")
    async def send(to: str) -> None: ...

    return app


def samples(page: bytes) -> dict[tuple[str, ...], float]:
    """Each sample by its name and the values of its labels in the order of their names."""
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    }


async def page_after_a_job(app: App, metrics: Metrics) -> bytes:
    async with app.worker(slots=4) as worker:
        metrics.of_worker(worker.vitals)
        handle = await app.asubmit_by_name("send", {"to": "ada"})
        await asyncio.wait_for(handle.aresult(), PATIENCE_S)
        return await asyncio.to_thread(metrics.page)


async def test_a_page_has_what_the_process_did_and_what_the_database_looks_like(migrated_path: Path) -> None:
    app = app_on(migrated_path)
    with Metrics(app) as metrics:
        page = await page_after_a_job(app, metrics)
    await app.aclose()

    found = samples(page)
    assert found["fencerow_submits_total", "send", "inserted", "mail"] == 1
    assert found["fencerow_jobs_finished_total", "send", "succeeded", "mail"] == 1
    assert found["fencerow_queue_latency_seconds_count", "send", "mail"] == 1
    assert found[("fencerow_worker_slots", "free")] + found[("fencerow_worker_slots", "busy")] == 4
    assert (found[("fencerow_workers", "alive")], found[("fencerow_database_look_up",)]) == (1, 1)
    known = {metric.name for metric in METRICS}
    families = text_string_to_metric_families(page.decode())
    told = {each.name + ("_total" if each.type == "counter" else "") for each in families}
    assert told <= known, "each is in the table of names"


@pytest.mark.outside("Prometheus")
async def test_the_page_is_as_prometheus_wants_it(migrated_path: Path) -> None:
    app = app_on(migrated_path)
    with Metrics(app) as metrics:
        page = await page_after_a_job(app, metrics)
    await app.aclose()

    check = partial(subprocess.run, ["promtool", "check", "metrics"], input=page, capture_output=True)
    done = await asyncio.to_thread(check)

    assert done.returncode == 0 and not done.stdout + done.stderr


def test_without_the_database_the_counts_of_the_process_are_told(
    migrated_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> looking.MetricsSeen:
        raise Unavailable("it is away")

    monkeypatch.setattr("fencerow.metrics.page.look", away)
    app = app_on(migrated_path)
    with Metrics(app) as metrics:
        app.submit_by_name("send", {"to": "ada"})
        found = samples(metrics.page())
    app.close()

    assert found["fencerow_submits_total", "send", "inserted", "mail"] == 1
    assert found[("fencerow_database_look_up",)] == 0
    assert not any(name == "fencerow_jobs" for name, *_ in found)


def test_metrics_without_their_library_are_a_clear_error(
    migrated_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    with pytest.raises(MissingExtra, match=r"pip install 'fencerow\[prometheus\]'"):
        Metrics(app_on(migrated_path))
