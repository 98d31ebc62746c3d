"""A SQLite database is two files, and nobody may hold the one and wait for the other against the order of the rest.

A claim writes the jobs and reads the worker rows. What read the jobs first and then waited for the worker rows made
a circle with it and a renewal, which SQLite does not notice: all of them waited until their patience ended.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fencerow.clocks.ahead import clock_reached
from fencerow.core.client.base import ClientBase
from fencerow.core.store import store
from fencerow.core.store.claims import Mark
from fencerow.core.store.workers import last_renewal
from fencerow.db.run import Operation, Steps, execute
from fencerow.db.sqlite import SqliteEngine
from fencerow.doctor.why import briefly, why
from fencerow.errors import Busy
from fencerow.operators.prefixes import workers_between
from fencerow.retention.purging import spent_workers
from fencerow.turns import keys
from fencerow_proof.arena.crash import Case, replaced
from fencerow_proof.arena.race import perform
from fencerow_proof.arena.sqlite import SqliteArena
from tests.kit.databases import copy_files, scratch_folder
from tests.kit.jobs import NAME, QUEUE, claim, new_job, register, running, submit
from tests.kit.pace import PATIENCE_S
from tests.proof.crash.cases import CASES
from tests.proof.race.people import FIRST, JOB, nothing, with_jobs, with_running

READING: list[tuple[str, Any, Operation[Any]]] = [
    ("why", with_jobs(), why(JOB)),
    ("why of a running job", with_running(), why(JOB)),
    ("holdings", with_running(), store.holdings(holder=FIRST)),
    ("list_workers", with_running(), store.list_workers()),
    ("workers_between", with_running(), workers_between("0", "f", limit=9)),
    ("unaware_workers", with_running(), store.unaware_workers("limits")),
    ("last_renewal", with_running(), last_renewal(holder=FIRST)),
    ("leases_ahead", with_running(), store.leases_ahead()),
    ("clock_reached", with_running(), clock_reached()),
    ("who has a key", with_running(), keys.look("k", limit=9)),
    ("dead_holders", with_running(), store.dead_holders()),
    ("lost_holders", with_running(), store.lost_holders()),
    ("spent_workers", with_running(), spent_workers(age_s=1.0)),
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

    return replaced(operation, steps)


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
        assert case.operation.writes == "jobs" or case.operation.reads == "both"
    elif touched:
        assert case.operation.of_workers == (touched == {"workers"})


def test_reading_the_jobs_and_then_waiting_stops_a_claim(lite: SqliteEngine) -> None:
    """Why the order matters: the control of the rule above."""
    hasty = SqliteEngine(lite.path, lite.queries, busy_timeout_s=0.05, journal_mode="truncate")
    holder = register(hasty)
    running(hasty)
    submit(hasty)
    reader = sqlite3.connect(lite.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT holder FROM fencerow_jobs WHERE state = 'running'").fetchall()
    # It cannot be committed while somebody reads the jobs and waits for something else.
    with pytest.raises(Busy, match=r"waited 0.05 s for others to end reading"):
        claim(hasty, holder)
    reader.execute("COMMIT")
    assert len(claim(hasty, holder)) == 1
    reader.close()
    hasty.close()


@pytest.mark.parametrize(
    ("writes", "reads", "name"),
    [("", "jobs", "list_workers"), ("", "jobs", "spent_workers"), ("", "workers", "spent_workers"),
     ("workers", "jobs", "spent_workers")],
)  # fmt: skip
def test_an_operation_that_does_not_say_what_it_touches_is_refused(
    lite: SqliteEngine, writes: str, reads: str, name: str
) -> None:
    params = dict.fromkeys(lite.queries[name].parameters)
    operation: Operation[Any] = Operation(name, lambda: execute(name, params), writes=writes, reads=reads)

    with pytest.raises(AssertionError, match="touches"):
        lite.run(operation)


def test_who_waits_in_vain_for_a_job_at_a_gate_is_told_why(lite: SqliteEngine) -> None:
    """Who has the turns there, and which workers live: each is asked in its own order."""
    (job_id,) = submit(lite, new_job(exclusive="shelf-7"))

    assert "the exclusive key shelf-7" in ClientBase(lite).run(briefly(job_id))


def test_a_claim_a_renewal_and_a_look_at_the_workers_do_not_wait_in_a_circle(lite: SqliteEngine) -> None:
    """The claim has read the worker rows, so the renewal waits for it, and the look for the renewal. For the look the
    claim must not wait in its turn: all three would stand until their patience ends."""
    holder, asked, goes_on = register(lite), threading.Event(), threading.Event()
    submit(lite)
    claimer, looker = (SqliteEngine(lite.path, lite.queries, busy_timeout_s=5.0) for _ in range(2))
    assert looker.run(store.leases_ahead()) == []  # its connections are open now
    claiming = store.claim(QUEUE, (Mark(0),), holder=holder, names=(NAME,), limit=1, margin_s=60.0)

    with ThreadPoolExecutor(3) as threads:
        claims = threads.submit(claimer.run, told(claiming, after=asked, then=goes_on))
        assert asked.wait(PATIENCE_S)
        renews = threads.submit(lite.run, store.renew(holder=holder))
        wait_until_shut(Path(f"{lite.path}-workers"))
        begun = threading.Event()
        looks = threads.submit(looker.run, told(store.leases_ahead(), before=begun))
        assert begun.wait(PATIENCE_S)
        goes_on.set()

        assert len(claims.result()) == 1
        assert renews.result() is not None
        assert looks.result() == []
    claimer.close()
    looker.close()


def told(
    operation: Operation[Any],
    *,
    before: threading.Event | None = None,
    after: threading.Event | None = None,
    then: threading.Event | None = None,
) -> Operation[Any]:
    """The same operation, which tells before its first statement, and after its last, where it waits."""

    def steps() -> Steps[Any]:
        if before is not None:
            before.set()
        answer = yield from operation.steps()
        if after is not None and then is not None:
            after.set()
            assert then.wait(PATIENCE_S)
        return answer

    return replaced(operation, steps)


def wait_until_shut(path: Path) -> None:
    """Until somebody waits for those who read this file: they are the last whom it lets in."""
    with (
        closing(sqlite3.connect(path, timeout=0)) as watch,
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        while True:
            watch.execute("SELECT 1 FROM sqlite_master").fetchall()
