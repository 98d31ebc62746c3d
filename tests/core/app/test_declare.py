from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import fencerow
from fencerow import App, Backoff, Defaults, Job
from fencerow.core.app.handlers import job_parameter_of
from fencerow.errors import DeclarationError


async def with_job(job: Job, path: str) -> int:
    return len(path)


def with_optional_job(job: Job | None, path: str) -> int:
    return len(path)


def with_dotted_job(job: fencerow.Job, path: str) -> int:
    return len(path)


def without(path: str) -> int:
    return len(path)


def test_a_decorated_function_stays_the_function(lite_app: App) -> None:
    @lite_app.job
    def double(n: int) -> int:
        """Twice as much."""
        return n * 2

    assert double(4) == 8
    assert double.__doc__ == "Twice as much."
    assert double.name == "double"
    assert double.queue == "default"


async def test_an_async_job_is_awaited_as_before(lite_app: App) -> None:
    @lite_app.job(queue="documents")
    async def extract(path: str) -> int:
        return len(path)

    assert await extract("abc") == 3
    assert extract.queue == "documents"


@pytest.mark.parametrize("function", [with_job, with_optional_job, with_dotted_job])
def test_the_running_job_goes_to_the_first_parameter_annotated_so(lite_app: App, function: Any) -> None:
    handler = lite_app.job(function).handler

    assert handler.job_parameter == "job"
    assert list(handler.arguments.parameters) == ["path"]


def test_an_annotation_that_only_type_checkers_see_means_the_job_too() -> None:
    module: dict[str, Any] = {}
    exec("from __future__ import annotations\ndef run(job: Job, path: str) -> None: ...", module)  # noqa: S102

    assert "Job" not in module
    assert job_parameter_of(module["run"]) == "job"


def test_a_job_needs_no_job_parameter(lite_app: App) -> None:
    handler = lite_app.job(without).handler

    assert handler.job_parameter is None
    assert not handler.is_async


def test_the_job_comes_first(lite_app: App) -> None:
    def wrong(path: str, job: Job) -> None: ...

    with pytest.raises(DeclarationError, match="first parameter"):
        lite_app.job(wrong)


def test_a_name_is_taken_once_and_both_places_are_named(lite_app: App) -> None:
    lite_app.job(without)

    with pytest.raises(DeclarationError, match=r"tests\.core\.app\.test_declare\.without") as raised:
        lite_app.job(without)

    assert "name=" in raised.value.fix
    assert lite_app.job(name="other")(without).name == "other"
    assert sorted(lite_app.jobs) == ["other", "without"]


def test_options_of_the_job_win_over_queue_app_and_settings(sqlite_path: object) -> None:
    app = App(
        f"sqlite:///{sqlite_path}",
        defaults=Defaults(attempts_max=5, timeout_s=50, snoozes_max=1),
        queues={"slow": Defaults(timeout_s=500, attempts_max=6)},
    )

    job = app.job(queue="slow", attempts_max=7, backoff=Backoff(base_s=1))(without)

    assert job.handler.timeout_s == 500
    assert job.handler.rule.attempts_max == 7
    assert job.handler.rule.backoff == Backoff(base_s=1)


def test_a_backoff_may_be_any_callable(lite_app: App) -> None:
    @dataclass
    class Linear:
        step_s: float

        def __call__(self, failures: int) -> float:
            return self.step_s * failures

    job = lite_app.job(backoff=Linear(2))(without)

    assert job.handler.rule.backoff == Linear(2)
    assert job.submit("a").refresh().options is None
    lite_app.close()


@pytest.mark.parametrize(
    "options",
    [
        {"attempts_max": 0},
        {"priority": 101},
        {"timeout_s": "5"},
        {"backoff": 3},
        {"key_lifetime_s": -1},
        {"queue": "a\nb"},
        {"name": "n" * 300},
        {"retry_on": "ValueError"},
    ],
)
def test_a_wrong_option_is_refused_where_it_is_written(lite_app: App, options: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError):
        lite_app.job(**options)(without)

    assert lite_app.jobs == {}


def test_what_cannot_be_a_job_is_refused(lite_app: App) -> None:
    def numbers() -> Iterator[int]:
        yield 1

    async def more() -> AsyncIterator[int]:
        yield 1

    def starred(*names: str) -> None: ...

    for function in (numbers, more, starred, lambda: 1, 7):
        with pytest.raises(DeclarationError):
            lite_app.job(function)  # type: ignore[arg-type]


def test_declaring_touches_no_database(sqlite_path: Any) -> None:
    app = App(f"sqlite:///{sqlite_path}")
    app.job(without)

    assert app.handlers["without"].name == "without"
    assert not sqlite_path.exists()


def test_a_job_declared_inside_a_function_may_name_itself(lite_app: App) -> None:
    """Its hints are text here, and are looked up while its own name does not stand for anything yet."""

    @lite_app.job
    def countdown(n: int) -> int:
        if n:
            countdown.submit(n - 1)
        return n

    assert countdown(0) == 0
