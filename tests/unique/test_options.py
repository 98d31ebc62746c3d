"""Unique jobs as an application says them: options, what the handle answers, and what is refused at the door."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from fencerow import App
from fencerow.errors import DeclarationError, InvalidInput
from fencerow.unique.options import Unique


async def test_one_job_of_the_same_arguments_is_there_at_a_time(app: App) -> None:
    @app.job(unique=True)
    def index(path: str, pages: int = 1) -> None: ...

    first = await index.asubmit("a")
    again, other = await index.asubmit("a"), await index.asubmit("b")
    assert [each.answer for each in (first, again, other)] == ["inserted", "existing", "inserted"]
    assert (again.id, again.replay) == (first.id, True)
    beside = await index.using(unique=False).asubmit("a")
    assert (beside.answer, beside.replay) == ("inserted", False)
    await first.acancel()
    assert (await index.asubmit("a")).answer == "inserted"


async def test_a_function_of_the_arguments_says_what_is_the_same(app: App) -> None:
    @app.job(unique=lambda tenant, path: None if tenant == 0 else f"tenant {tenant}")
    def index(tenant: int, path: str) -> None: ...

    calls = [index.call(*args) for args in ((1, "a"), (1, "b"), (0, "a"), (0, "a"), (2, "a"))]
    handles = await app.asubmit_many(calls)
    assert [each.answer for each in handles] == ["inserted", "existing", "inserted", "inserted", "inserted"]
    assert handles[1].id == handles[0].id


async def test_the_last_of_a_burst_runs_or_the_first(app: App) -> None:
    @app.job(unique=lambda order, **_: str(order))
    def ship(order: int, note: str) -> None: ...

    late = ship.using(debounce_s=timedelta(seconds=30), debounce_max_s=60)
    handles = [await late.asubmit(1, note) for note in ("a", "b", "c")]
    assert [each.answer for each in handles] == ["inserted", "replaced", "replaced"]
    job = await handles[0].arefresh()
    assert job.args == {"order": 1, "note": "c"}
    assert job.run_at_us > job.submitted_at_us

    early = ship.using(unique="all", throttle_s=30)
    assert [(await early.asubmit(order, "")).answer for order in (1, 2)] == ["inserted", "existing"]


async def test_jobs_of_one_scope_are_the_same_across_names(app: App) -> None:
    same = Unique("nightly", scope="reports", on_conflict="replace")

    @app.job(unique=same)
    def short() -> None: ...

    @app.job(unique=same)
    def long() -> None: ...

    first = await short.asubmit()
    second = await long.asubmit()
    assert (second.answer, second.id) == ("replaced", first.id)
    assert (await second.arefresh()).name == "long"


async def test_a_key_of_a_unique_job_finds_what_the_first_submit_found(app: App) -> None:
    @app.job(unique=True)
    def index(path: str) -> None: ...

    first = await index.asubmit("a")
    keyed = index.using(key="request 1")
    assert [(await keyed.asubmit("a")).id for _ in range(2)] == [first.id] * 2


async def test_a_submit_in_a_transaction_of_the_caller_is_unique_with_it(app: App, url: str) -> None:
    @app.job(unique=True)
    def index(path: str) -> None: ...

    await index.using(unique=False).asubmit("a")  # the tables are there
    path = url.removeprefix("sqlite:///")
    connection: Any = psycopg.connect(url) if path == url else sqlite3.connect(path)
    with closing(connection):
        connection.execute("BEGIN")
        inside = index.using(connection=connection)
        assert [inside.submit("a").answer for _ in range(2)] == ["inserted", "existing"]
        connection.rollback()
    assert (await index.asubmit("a")).answer == "inserted"


SOON = datetime(2040, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"unique": 5}, "unique is 5"),
        ({"unique": ""}, "unique"),
        ({"debounce_s": 5, "debounce_max_s": 9}, "without unique"),
        ({"unique": True, "debounce_s": 5}, "without debounce_max_s"),
        ({"unique": True, "debounce_s": 5, "debounce_max_s": 4}, "which is less"),
        ({"unique": True, "debounce_max_s": 4}, "without debounce_s"),
        ({"unique": True, "debounce_s": 5, "debounce_max_s": 9, "throttle_s": 5}, "throttle_s"),
        ({"unique": True, "throttle_s": -1}, "throttle_s is -1"),
        ({"unique": Unique(True, period_s=5), "throttle_s": 5}, "throttle_s"),
        ({"unique": Unique(True, states=["queued"]), "debounce_s": 5, "debounce_max_s": 9}, "debounce_s"),
        ({"unique": False, "throttle_s": 5}, "unique=False"),
    ],
)
def test_what_cannot_be_meant_is_refused_where_it_is_written(
    lite_app: App, wrong: dict[str, Any], said: str
) -> None:
    def index(path: str) -> None: ...

    with pytest.raises(DeclarationError, match=said):
        lite_app.job(**wrong)(index)
    with pytest.raises(InvalidInput, match=said):
        lite_app.job(index).using(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"states": []},
        {"states": "queued"},
        {"states": ["retrying"]},
        {"states": ["queued"], "period_s": 5},
        {"period_s": "soon"},
        {"on_conflict": "raise"},
        {"on_conflict": "replace", "states": ["queued"]},
        {"on_conflict": "replace", "period_s": 5},
        {"scope": ""},
    ],
)
def test_a_rule_that_contradicts_itself_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Unique(True, **wrong)


@pytest.mark.parametrize(
    ("options", "using", "said"),
    [
        ({"unique": Unique(True, on_conflict="replace")}, {"key": "k"}, "key was given together"),
        ({"unique": True, "debounce_s": 5, "debounce_max_s": 9}, {"key": "k"}, "together with key"),
        ({"unique": True, "debounce_s": 5, "debounce_max_s": 9}, {"delay_s": 5}, "delay_s or run_at"),
        ({"unique": True, "debounce_s": 5, "debounce_max_s": 9}, {"run_at": SOON}, "delay_s or run_at"),
        ({"unique": True, "debounce_s": 5, "debounce_max_s": 9}, {"expires_s": 4}, "would expire"),
        ({"unique": Unique(True, states=["succeeded"])}, {"ephemeral": True}, "ephemeral"),
        ({"unique": lambda path: 5}, {}, "unique"),
        ({"unique": lambda path: 1 / 0}, {}, "raised ZeroDivisionError"),
    ],
)
def test_a_submit_that_contradicts_the_rule_stores_nothing(
    lite_app: App, options: dict[str, Any], using: dict[str, Any], said: str
) -> None:
    @lite_app.job(**options)
    def index(path: str) -> None: ...

    with pytest.raises(InvalidInput, match=said):
        index.using(**using).submit("a")
    lite_app.close()


def test_a_function_must_take_what_the_job_takes(lite_app: App) -> None:
    with pytest.raises(DeclarationError, match="cannot be called with the job's arguments"):

        @lite_app.job(unique=lambda other: other)
        def index(path: str) -> None: ...
