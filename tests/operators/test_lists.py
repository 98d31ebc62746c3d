"""Lists say what is so: every field that they have, who is alive, and what runs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fencerow.core.model.ids import new_id
from fencerow.core.model.wanted import SlotGroupNow, Stated
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.operators.looking import UNLISTED
from fencerow.testing.clock import DatabaseClock
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.kit import jobs

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures

AnyEngine = SqliteEngine | PostgresEngine
FULL: dict[str, Any] = {
    "priority": 7,
    "timeout_s": 5.0,
    "expires_s": 3_600.0,
    "retention_s": 60.0,
    "scope": "s",
    "key": "k",
    "submitted_by": "ada",
    "options": '{"retry":1}',
    "tags": '["a"]',
    "metadata": '{"m":1}',
    "headers": '{"h":"1"}',
}


# What a running job that waits for no turn has not.
EMPTY = {"ended_at", "revived_at", "error", "exclusive", "exclusive_at_once", "limits", "gate", "share"}
EMPTY |= {"affinity", "affinity_wait_s"}


def running_in_full(engine: AnyEngine) -> str:
    """A job of which every column says something."""
    job = jobs.running(engine, **FULL)
    holder = jobs.read(engine, job.id).holder or ""
    engine.run(store.progress(job.id, holder=holder, attempt=job.attempt, percent=40.0, note="halfway"))
    engine.run(store.cancel(job.id, actor="bob"))
    return job.id


@pytest.mark.parametrize("words", [(), ("--tag", "a")], ids=["list", "search"])
def test_a_list_fills_a_field_or_leaves_it_out(
    cli: Cli, url: str, engine: AnyEngine, words: tuple[str, ...]
) -> None:
    job_id = running_in_full(engine)

    (listed,) = cli("jobs", *words, "--json").json
    shown = cli("jobs", "show", job_id, "--json").json["job"]

    assert listed == {name: value for name, value in shown.items() if name not in UNLISTED}
    assert {name for name, value in listed.items() if value is None} <= EMPTY
    assert {shown[name] is None for name in UNLISTED} == {True, False}, "what was left out says something"


def worker(engine: AnyEngine, name: str, *, running: int, waiting: int, slots: int = 12) -> str:
    holder = new_id()
    stated = Stated(0, (SlotGroupNow((jobs.QUEUE,), slots, running, waiting),), held=running + waiting)
    made = store.register(
        holder=holder,
        name=name,
        host="h",
        pid=1,
        info='{"queues":["mail"],"slots":12}',
        lease_s=30.0,
        stated=msgspec.json.encode(stated).decode(),
    )
    assert engine.run(made)
    return holder


def test_what_was_claimed_ahead_is_held_and_does_not_run(cli: Cli, url: str, engine: AnyEngine) -> None:
    holder = worker(engine, "w1", running=12, waiting=6)
    jobs.submit(engine, *(jobs.new_job() for _ in range(18)))
    assert len(jobs.claim(engine, holder, limit=18)) == 18

    (found,) = cli("workers", "--json").json
    table = cli("workers").out

    assert [found[name] for name in ("running", "waiting", "slots", "held")] == [12, 6, 12, 18]
    head, row = (line.split("  ") for line in table.splitlines())
    assert [each.strip() for each in row if each.strip()][1:4] == ["w1", "12 of 12", "18"]
    assert [each.strip() for each in head if each.strip()][1:4] == ["name", "busy", "held"]


def test_who_has_ended_is_hidden_unless_asked_for(
    cli: Cli, url: str, engine: AnyEngine, clock: DatabaseClock
) -> None:
    clock.advance(-40)
    dead = worker(engine, "dead", running=3, waiting=0)
    clock.advance(40)
    silent = cli("workers", "--json").json
    noted = cli("workers").out
    jobs.bury(engine)
    retired, alive = (worker(engine, name, running=1, waiting=0) for name in ("retired", "alive"))
    engine.run(store.retire(holder=retired))

    by_default = {each["id"] for each in cli("workers", "--json").json}
    everybody = {each["id"]: each for each in cli("workers", "--all", "--json").json}

    assert [each["id"] for each in silent] == [dead] and "silent: its lease ran out 1" in noted
    assert alive in by_default and not {dead, retired} & by_default
    assert {everybody[each]["state"] for each in (dead, retired)} == {"dead", "retired"}
    assert "running" not in everybody[dead], "it says nothing any more"
    assert {each["id"] for each in cli("workers", "--state", "dead", "--json").json} == {dead}
    assert cli("workers", "--all", "--state", "dead").error == "FR-201"
    assert "retired" in cli("workers", "--all").out


def test_where_nobody_lives_it_says_how_to_see_the_others(cli: Cli, url: str, engine: AnyEngine) -> None:
    engine.run(store.retire(holder=worker(engine, "w1", running=0, waiting=0)))

    assert cli("workers").out == "(no worker is alive; --all shows those that have ended)\n"


def test_a_worker_that_says_nothing_has_no_such_fields(cli: Cli, url: str, engine: AnyEngine) -> None:
    jobs.register(engine)

    (found,) = cli("workers", "--json").json

    assert not {"running", "waiting", "slots"} & found.keys()
    assert found["queues"] == ["mail"]


def test_times_are_relative_or_exact_and_json_has_iso(
    cli: Cli, url: str, engine: AnyEngine, clock: DatabaseClock
) -> None:
    clock.advance(-300)
    (past,) = jobs.submit(engine, jobs.new_job(delay_s=125.0))
    clock.advance(300)
    jobs.submit(engine, jobs.new_job(delay_s=125.0))
    (told, _) = cli("jobs", "--json").json

    assert "in 2 min" in cli("jobs").out
    assert told["run_at"][:19] + "Z" in cli("jobs", "--utc").out
    assert "in 2 min" not in cli("jobs", "--utc").out
    assert told["run_at"].endswith("Z") and len(told["run_at"]) == len("2026-11-22T21:30:01.234567Z")
    assert "3 min ago" in cli("jobs").out and "5 min ago" in cli("jobs", "show", past).out


def test_the_next_page_is_told(cli: Cli, url: str, engine: AnyEngine) -> None:
    first, second = jobs.submit(engine), jobs.submit(engine)

    page = cli("jobs", "list", "--limit", "1")
    rest = cli("jobs", "list", "--limit", "2", "--before", second[0])

    assert second[0] in page.out and page.err == f"the next page: --before {second[0]}\n"
    assert first[0] in rest.out and rest.err == ""
