"""The beginning or the end of an id means the one job whose id begins or ends so; of several it means none."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.core.client.base import ClientBase
from fencerow.core.errors import InvalidInput, JobNotFound
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.queries import pyformat
from fencerow.db.run import Operation
from fencerow.db.sqlite import SqliteEngine
from fencerow.operators.errors import AmbiguousId
from fencerow.operators.prefixes import job_meant, jobs_between, jobs_ending, parse_prefix, workers_between
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.kit import jobs

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures

AnyEngine = SqliteEngine | PostgresEngine
FIRST, SECOND, OTHER = (
    "0190b2c4-7f3a-7c21-9d5e-3f6a1b2c4d5e",
    "0190b2c4-7f3a-7c21-9d5e-3f6a1b2c4d5f",
    "0190b2c5-0000-7000-8000-000000000000",
)


def submitted(engine: AnyEngine, *ids: str) -> None:
    jobs.submit(engine, *(jobs.new_job(id=each) for each in ids))


def registered(engine: AnyEngine, holder: str, name: str = "w", *, ended: bool = False) -> None:
    made = store.register(
        holder=holder, name=name, host="h", pid=1, info='{"queues":["mail"]}', lease_s=30.0, stated=STATED
    )
    assert engine.run(made)
    if ended:
        assert engine.run(store.retire(holder=holder))


STATED = '{"version":0,"slot_groups":[{"queues":["mail"],"slots":5}]}'


def state_of(engine: AnyEngine, job_id: str) -> State:
    return jobs.read(engine, job_id).state


@pytest.mark.parametrize("typed", ["0190b2c5", "0190B2C5-0", "0190b2c50000", OTHER, f" {OTHER.upper()} "])
def test_an_id_may_be_written_in_several_ways(typed: str) -> None:
    meant = parse_prefix(typed)

    assert meant.first <= OTHER <= meant.last < "0190b2c6"
    assert meant.first > FIRST
    assert meant.is_whole == (typed.strip().lower() == OTHER)


def test_every_verb_of_jobs_takes_the_beginning_of_an_id(cli: Cli, url: str, engine: AnyEngine) -> None:
    submitted(engine, FIRST, OTHER)
    typed = "0190b2c5-0"

    shown, why = cli("jobs", "show", typed, "--json").json, cli("why", typed, "--json").json
    before = cli("jobs", "list", "--before", typed, "--json").json
    cancelled = cli("jobs", "cancel", typed)
    revived = cli("jobs", "revive", typed)
    cli("jobs", "cancel", typed, OTHER)
    deleted = cli("jobs", "delete", typed)

    assert [shown["job"]["id"], why["id"]] == [OTHER, OTHER]
    assert [each["id"] for each in before] == [FIRST]
    assert [cancelled.out, revived.out, deleted.out] == [
        f"{OTHER}  cancelled\n",
        f"{OTHER}  queued\n",
        f"{OTHER}  deleted\n",
    ]
    assert state_of(engine, FIRST) is State.QUEUED


def test_what_fits_several_is_refused_with_the_first_of_them(cli: Cli, url: str, engine: AnyEngine) -> None:
    submitted(engine, FIRST, SECOND, OTHER)

    for words in (
        ("jobs", "show", "0190b2c4"),
        ("jobs", "cancel", "0190b2c5", "0190b2c4"),
        ("jobs", "cancel", "--queue", "mail", "--before", "0190b2c4-7f3a-7"),
        ("jobs", "list", "--before", "0190"),
        ("why", "0190b2c47f3a7"),
    ):
        refused = cli(*words)
        assert (refused.error, refused.code, refused.out) == ("FR-214", 2, ""), words
        assert FIRST in refused.err and SECOND in refused.err
    assert {state_of(engine, each) for each in (FIRST, SECOND, OTHER)} == {State.QUEUED}, "nothing was done"


def test_live_and_finished_jobs_are_looked_for_together(cli: Cli, url: str, engine: AnyEngine) -> None:
    submitted(engine, FIRST, SECOND)
    cli("jobs", "cancel", SECOND)

    assert cli("jobs", "show", "0190b2c4").error == "FR-214"
    assert cli("jobs", "show", SECOND, "--json").json["job"]["state"] == "cancelled"


def test_of_very_many_the_first_five_are_named(cli: Cli, url: str, engine: AnyEngine) -> None:
    ids = [f"0190b2c4-7f3a-7c21-9d5e-{number:012x}" for number in range(9)]
    submitted(engine, *ids)

    with pytest.raises(AmbiguousId, match="more than 5 jobs") as raised:
        ClientBase(engine).run(job_meant(parse_prefix("0190b2c4")))

    assert raised.value.candidates == tuple(ids[:5])
    assert "and more" in cli("why", "0190b2").err


@pytest.mark.parametrize("typed", ["019", "0190g", "0190-b2c4", "0190b2c4-7f3a7", f"{FIRST}0", "", "mail"])
def test_what_begins_no_id_is_refused_without_a_look(cli: Cli, typed: str) -> None:
    with pytest.raises(InvalidInput, match="is not an id"):
        parse_prefix(typed)

    assert cli("jobs", "show", typed).error == "FR-201", "although no database was named"


def test_the_end_of_an_id_names_a_job_live_or_finished(cli: Cli, url: str, engine: AnyEngine) -> None:
    submitted(engine, FIRST, SECOND, OTHER)
    cli("jobs", "cancel", SECOND)

    shown = [cli("jobs", "show", each, "--json").json["job"]["id"] for each in ("2c4d5e", SECOND[-8:])]
    missing = cli("jobs", "show", "abcdef")
    short = cli("jobs", "show", FIRST[-5:])

    assert shown == [FIRST, SECOND]
    assert (missing.error, missing.code) == ("FR-301", 1) and "begins or ends with abcdef" in missing.err
    assert short.error == "FR-301" and "ends" not in short.err, "five digits are a beginning or nothing"


def test_an_end_that_is_the_beginning_of_another_id_too_is_refused(
    cli: Cli, url: str, engine: AnyEngine
) -> None:
    submitted(engine, OTHER, f"{FIRST[:-8]}{OTHER[:8]}")

    refused = cli("jobs", "cancel", OTHER[:8])

    assert refused.error == "FR-214" and OTHER in refused.err and f"{FIRST[:-8]}{OTHER[:8]}" in refused.err


def test_where_older_jobs_were_not_looked_at_a_short_end_is_refused(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted(engine, FIRST, SECOND, OTHER)
    monkeypatch.setattr("fencerow.operators.prefixes.LOOKED_AT", 2)
    client = ClientBase(engine)

    assert client.run(job_meant(parse_prefix(SECOND[-8:]))) == SECOND
    with pytest.raises(AmbiguousId, match="give the last 8 digits"):
        client.run(job_meant(parse_prefix(SECOND[-6:])))
    with pytest.raises(JobNotFound, match="among the newest 2"):
        client.run(job_meant(parse_prefix(FIRST[-8:])))


def test_a_worker_is_named_by_the_beginning_of_its_id(cli: Cli, url: str, engine: AnyEngine) -> None:
    registered(engine, FIRST)
    registered(engine, OTHER)

    shown = cli("workers", "show", "0190b2c4", "--json").json
    paused = cli("workers", "pause", "0190b2c5", "--json").json
    both = cli("workers", "pause", "0190b2")

    assert shown["worker"]["id"] == FIRST
    assert [each["holder"] for each in paused["orders"]] == [OTHER]
    assert both.error == "FR-214" and FIRST in both.err


def test_a_living_worker_is_meant_rather_than_those_before_it(cli: Cli, url: str, engine: AnyEngine) -> None:
    registered(engine, FIRST, ended=True)
    registered(engine, SECOND)
    registered(engine, OTHER, ended=True)

    living = cli("workers", "show", "0190b2c4", "--json").json
    ended = cli("workers", "show", "0190b2c5", "--json").json

    assert living["worker"]["id"] == SECOND
    assert ended["worker"]["id"] == OTHER
    assert cli("workers", "pause", "0190b2c5").error == "FR-602"


def test_a_name_comes_before_the_beginning_of_an_id(cli: Cli, url: str, engine: AnyEngine) -> None:
    registered(engine, FIRST)
    registered(engine, OTHER, name="0190b2c4")

    assert cli("workers", "show", "0190b2c4", "--json").json["worker"]["id"] == OTHER
    assert [each["holder"] for each in cli("workers", "pause", "0190b2c4", "--json").json["orders"]] == [
        OTHER
    ]


def plan(engine: AnyEngine, operation: Operation[Any]) -> str:
    """How its one statement is carried out, with these parameters."""
    query = operation.steps()
    statement = next(query)
    query.close()
    (text,) = engine.queries[statement.name].statements
    text, explain = (
        (pyformat(text), "EXPLAIN (COSTS OFF)")
        if isinstance(engine, PostgresEngine)
        else (text, "EXPLAIN QUERY PLAN")
    )
    with engine.session() as session:
        connection: Any = session.connection
        rows = connection.execute(f"{explain} {text}", dict(statement.params)).fetchall()
    return "\n".join(str(row[-1]) for row in rows)


RANGE = parse_prefix("0190b2c4")
JOBS = jobs_between(RANGE.first, RANGE.last, limit=6)
ENDING = jobs_ending("6a1b2c4d", look=1_000, limit=6)
WORKERS = workers_between(RANGE.first, RANGE.last, limit=6)
FILL = (
    "INSERT INTO fencerow.{} (id, queue, name, state, run_at, attempts_max, crashes_max, snoozes_max,"
    " submitted_at, ended_at, args_bytes, args)"
    " SELECT gen_random_uuid(), 'q', 'n', '{}', now(), 1, 1, 1, now(), now(), 2, '{{}}'"
    " FROM generate_series(1, 5000)"
)


def test_on_postgres_a_beginning_is_a_range_of_each_primary_key(pg: PostgresEngine) -> None:
    with pg.session() as session:
        session.connection.execute(FILL.format("jobs", "queued").encode())
        session.connection.execute(FILL.format("finished_jobs", "succeeded").encode())
    with pg.session() as session:
        session.connection.execute(b"ANALYZE fencerow.jobs")
        session.connection.execute(b"ANALYZE fencerow.finished_jobs")

    found = plan(pg, JOBS)

    assert "Index Cond: ((id >= " in found
    assert "Seq Scan" not in found and "->  Sort" not in found, found
    assert found.count("Index Cond: ((id >= ") >= 2, "live and finished"


def test_on_sqlite_a_beginning_is_a_range_of_each_primary_key(lite: SqliteEngine) -> None:
    found = plan(lite, JOBS)

    assert found.count("(id>? AND id<?)") == 2, found
    assert "SCAN" not in found and "TEMP B-TREE" not in found, found


def test_on_sqlite_an_end_reads_so_many_entries_of_each_primary_key(lite: SqliteEngine) -> None:
    found = plan(lite, ENDING)

    assert found.count("USING COVERING INDEX") == 2 and "MERGE" in found, found


def test_on_sqlite_workers_are_found_by_their_primary_key(lite: SqliteEngine) -> None:
    found = plan(lite, WORKERS)

    assert "(id>? AND id<?)" in found and "SCAN" not in found, found
