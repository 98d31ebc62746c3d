"""Words of other systems, and mistakes of the first hour, are answered with the line to write."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fencerow import App, Job
from fencerow.errors import DeclarationError, UnknownVerb, WrongCall
from fencerow.testing import drain
from tests.house.tree import ROOT


@pytest.mark.parametrize(
    ("option", "write"),
    [
        ("cron", "app.schedule(job, cron=...)"),
        ("every", "app.schedule("),
        ("bind", "`job: Job`"),
        ("seal", "App(seal=...)"),
        ("rate_limit", "limits="),
    ],
)
def test_an_option_that_is_none_here_names_its_place(option: str, write: str, lite_app: App) -> None:
    with pytest.raises(WrongCall) as refused:
        lite_app.job(**{option: True})  # type: ignore[call-overload]  # pyright: ignore
    with pytest.raises(WrongCall) as at_submit:
        lite_app.job(name="job")(print_it).using(**{option: 1})  # type: ignore[arg-type]  # pyright: ignore

    assert write in refused.value.fix and write in at_submit.value.fix


def print_it(text: str) -> None: ...


@pytest.mark.parametrize(
    ("verb", "write"),
    [
        ("cron", "app.schedule("),
        ("run", "fencerow worker -A"),
        ("include", "import these"),
        ("concurrency", "app.worker(slots=...)"),
    ],
)
def test_a_verb_of_an_app_of_others_names_ours(verb: str, write: str, lite_app: App) -> None:
    with pytest.raises(UnknownVerb) as refused:
        getattr(lite_app, verb)

    assert write in refused.value.fix and not hasattr(lite_app, verb)


@pytest.mark.parametrize(
    ("option", "of_the_app", "of_the_worker"),
    [
        ("concurrency", "app.worker(slots=...)", "slots="),
        ("max_workers", "app.worker(slots=...)", "slots="),
        ("concurency", "app.worker(slots=...)", "slots="),
        ("at_once", "limits=[Limit(", "slots="),
        ("shema", "correct", "correct"),
    ],
)
def test_an_option_that_an_app_or_a_worker_has_not_names_the_one_that_is_meant(
    option: str, of_the_app: str, of_the_worker: str, lite_app: App
) -> None:
    with pytest.raises(WrongCall) as by_the_app:
        App(**{option: 4})  # type: ignore[arg-type]  # pyright: ignore
    lite_app.job(print_it)
    with pytest.raises(WrongCall) as by_the_worker:
        lite_app.worker(**{option: 4})  # type: ignore[arg-type]  # pyright: ignore

    assert of_the_app in by_the_app.value.fix and of_the_worker in by_the_worker.value.fix
    assert option in by_the_app.value.what and option in by_the_worker.value.what


def test_the_wrapper_of_a_decorator_is_told_of_wraps(lite_app: App) -> None:
    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    with pytest.raises(DeclarationError, match=r"functools\.wraps"):
        lite_app.job(timed(print_it))


def test_arguments_of_an_older_signature_say_what_to_do(migrated_path: Path) -> None:
    url = f"sqlite:///{migrated_path}"
    with App(url) as before:
        before.job(name="send")(print_it).submit("hello")

    def send(text: str, to: str) -> None: ...

    with App(url) as after:
        after.job(name="send")(send)
        (ran,) = drain(after)

    assert ran.error is not None and ran.error.message.startswith("FR-308")
    for each in ("a default", "args_version", "upgrade=", "`fencerow jobs revive`"):
        assert each in ran.error.message


def test_the_effect_in_the_guide_works_on_a_file(migrated_path: Path) -> None:
    page = (ROOT / "docs" / "guide.md").read_text("utf-8")
    (block,) = re.findall(r"^```python\n(@app\.job\ndef book.+?)^```", page, re.MULTILINE | re.DOTALL)
    with sqlite3.connect(migrated_path) as connection:
        connection.execute("CREATE TABLE invoice (id integer, booked boolean)")
        connection.execute("INSERT INTO invoice VALUES (7, false)")
    connection.close()
    with App(f"sqlite:///{migrated_path}") as app:
        exec(block, {"app": app, "Job": Job})  # noqa: S102 - our own page
        app.submit_by_name("book", {"invoice": 7})
        drain(app, check=True)

    with sqlite3.connect(migrated_path) as connection:
        assert connection.execute("SELECT booked FROM invoice").fetchall() == [(1,)]
    connection.close()
