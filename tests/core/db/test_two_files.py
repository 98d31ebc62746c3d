"""A SQLite database is two files, and nobody may hold the one and wait for the other against the order of the rest.

A claim writes the jobs and reads the worker rows. What read the jobs first and then waited for the worker rows made
a circle with it and a renewal, which SQLite does not notice: all of them waited until their patience ended.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fencerow.core.db.run import Operation, Steps
from fencerow.core.db.sqlite import SqliteEngine
from fencerow.core.store import store
from fencerow.doctor.why import why
from fencerow.errors import Busy
from fencerow_proof.arena.crash import Case
from fencerow_proof.arena.race import perform
from fencerow_proof.arena.sqlite import SqliteArena
from tests.kit.databases import copy_files, scratch_folder
from tests.kit.jobs import claim, register, running, submit
from tests.proof.crash.cases import CASES
from tests.proof.race.people import FIRST, JOB, nothing, with_jobs, with_running

READING: list[tuple[str, Any, Operation[Any]]] = [
    ("why", with_jobs(), why(JOB)),
    ("why of a running job", with_running(), why(JOB)),
    ("holdings", with_running(), store.holdings(holder=FIRST)),
    ("list_workers", with_running(), store.list_workers()),
    ("dead_holders", with_running(), store.dead_holders()),
    ("lost_holders", with_running(), store.lost_holders()),
    ("spent_workers", with_running(), store.spent_workers(age_s=1.0)),
]
ALL = [*CASES, *(Case(name, setup, operation, nothing) for name, setup, operation in READING)]


@pytest.fixture(scope="module")
def arena(_lite_template: Path) -> Iterator[SqliteArena]:
    """One for all cases, each of which clears it."""
    with scratch_folder() as folder:
        copy_files(_lite_template, path := folder / "jobs.db")
        made = SqliteArena(path, store.sqlite_queries())
        yield made
        made.close()


def traced(operation: Operation[Any], seen: list[str]) -> Operation[Any]:
    """The same operation, which tells what it runs."""

    def steps() -> Steps[Any]:
        inner = operation.steps()
        answer: Any = None
        while True:
            try:
                statement = inner.send(answer)
            except StopIteration as done:
                return done.value
            seen.append(statement.name)
            answer = yield statement

    return Operation(operation.name, steps, operation.alone, operation.repeatable, operation.writes)


def files(names: list[str]) -> set[str]:
    """Which files these queries touch."""
    text = " ".join(text for name in names for text in store.sqlite_queries()[name].statements)
    left = text.replace("fencerow_file.fencerow_workers", "")
    found = {"workers"} if left != text else set()
    return found | ({"jobs"} if re.search(r"\bfencerow_(?!now\b)\w+", left) else set())


@pytest.mark.parametrize("case", ALL, ids=[case.name for case in ALL])
def test_who_touches_both_files_takes_the_jobs_first(case: Case, arena: SqliteArena) -> None:
    arena.clear()
    perform(arena, case.setup())
    seen: list[str] = []
    arena.run(traced(case.operation, seen))
    touched = files(seen)
    if touched == {"jobs", "workers"}:
        assert case.operation.writes == "jobs" or (case.operation.writes == "" and case.operation.both_files)
    if case.operation.writes == "workers":
        assert touched == {"workers"}


def test_reading_the_jobs_and_then_waiting_stops_a_claim(lite: SqliteEngine) -> None:
    """Why the order matters: the control of the rule above."""
    hasty = SqliteEngine(lite.path, lite.queries, busy_timeout_s=0.05, journal_mode="truncate")
    holder = register(hasty)
    running(hasty)
    submit(hasty)
    reader = sqlite3.connect(lite.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT holder FROM fencerow_jobs WHERE state = 'running'").fetchall()
    with pytest.raises(
        Busy
    ):  # it cannot be committed while somebody reads the jobs and waits for something else
        claim(hasty, holder)
    reader.execute("COMMIT")
    assert len(claim(hasty, holder)) == 1
    reader.close()
    hasty.close()
