"""What an app, a worker and a submit are given by mistake in the first hour: found, expected, what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fencerow import App
from fencerow.errors import FencerowError
from fencerow.limits import Limit


def add(x: int) -> int:
    return x


@pytest.mark.parametrize(
    ("given", "found", "write"),
    [
        ({"url": 5}, "type int", "pass it as text"),
        ({"config": {"slots": 3}}, "config is of type dict", "Config("),
        ({"defaults": {"attempts_max": 3}}, "defaults is of type dict", "Defaults("),
        ({"queues": ["mail"]}, "queues is of type list", '{"mail": Defaults('),
        ({"queues": {"mail": 5}}, "queues['mail'] is of type int", "slots are a worker's"),
        ({"telemetry": 5}, "telemetry is of type int", "Telemetry"),
        ({"outside": "s3://bucket"}, "outside= is text", "outside_store"),
    ],
)
def test_an_app(given: dict[str, Any], found: str, write: str) -> None:
    with pytest.raises(FencerowError) as refused:
        App(**given)

    assert found in refused.value.what and refused.value.why and write in refused.value.fix


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"slots": 0}, "slots is 0"),
        ({"slots": "many"}, "slots is of type str"),
        ({"queues": {"mail": 0}}, "slots of the queue mail is 0"),
        ({"queues": 5}, "queues is of type int"),
        ({"labels": 5}, "labels is of type int"),
    ],
)
def test_a_worker(given: dict[str, Any], found: str, lite_app: App) -> None:
    lite_app.job(add)
    with pytest.raises(FencerowError) as refused:
        lite_app.worker(**given)

    assert found in refused.value.what and refused.value.why and refused.value.fix


@pytest.mark.parametrize(
    ("mistake", "write"),
    [
        (lambda app: app.submit(app.jobs["add"]), "job.submit(...)"),
        (lambda app: app.submit_by_name("add", [1]), '{"parameter": value}'),
        (lambda app: app.job(key="k"), "job.using(key=...)"),
        (lambda app: app.schedule(app.jobs["add"].call(1), every=5), "interval_s="),
    ],
)
def test_a_job_that_is_submitted_or_scheduled(
    mistake: Callable[[App], object], write: str, lite_app: App
) -> None:
    lite_app.job(add)
    with pytest.raises(FencerowError) as refused:
        mistake(lite_app)

    assert write in refused.value.fix


def test_one_limit_is_as_good_as_a_list_of_one(lite_app: App) -> None:
    limit = Limit("github", at_once=2)

    assert App(lite_app.config.url, limits=limit).limits == (limit,)  # type: ignore[arg-type]  # pyright: ignore
