"""Rows that whoever may only submit could write: what they say of keys and limits stops no turn of anybody else."""

from __future__ import annotations

import sqlite3

import psycopg
import pytest

from fencerow import Config
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.limits import Limit, limits
from fencerow.turns import handing
from fencerow.turns.checks import examine_keys
from tests.core.store.stage import rows
from tests.kit.jobs import AnyEngine, new_job, read, submit

LONG = "(SELECT string_agg(md5(CAST(n AS text)), '') FROM generate_series(1, 200) AS n)"  # no index takes it
REFUSED = {
    "limits": (
        "'{{}}'",
        "ARRAY[NULL, 'a']",
        "ARRAY[ARRAY['a'], ARRAY['b']]",
        f"ARRAY[{LONG}]",
        "'[5:5]={{a}}'",
    ),
    "affinity_wait_s": ("'NaN'", "'-Infinity'", "1e300"),
    **dict.fromkeys(("queue", "name", "exclusive", "gate", "share", "affinity"), (LONG,)),
}


def test_no_job_is_stored_that_would_stop_others(pg: PostgresEngine) -> None:
    (job_id,) = submit(pg, new_job())

    for column, values in REFUSED.items():
        for value in values:
            with pytest.raises(psycopg.errors.CheckViolation):
                rows(pg, f"UPDATE {{jobs}} SET state = 'waiting', {column} = {value} WHERE id = '{job_id}'")


def test_nor_limits_that_are_no_list_in_a_file(lite: SqliteEngine) -> None:
    (job_id,) = submit(lite, new_job())

    for value in ("no list", "{}"):
        with pytest.raises(sqlite3.IntegrityError), lite.session() as session:
            session.connection.execute("UPDATE fencerow_jobs SET limits = ? WHERE id = ?", (value, job_id))


def test_one_that_names_no_limit_waits_apart_and_stops_nobody_beside_it(engine: AnyEngine) -> None:
    engine.run(limits.define(Limit("a", at_once=9), actor="ada", reason=None))
    before, forged, behind = submit(engine, *(new_job(limits=("a",)) for _ in range(3)))
    rows(engine, f"UPDATE {{jobs}} SET limits = NULL WHERE id = '{forged}'")

    given = engine.run(handing.hand_over()).queued

    assert sorted(each.id for each in given) == sorted([before, behind])
    assert read(engine, forged).gate == "unreadable"


def test_one_that_cannot_be_read_waits_apart_and_is_told(engine: AnyEngine) -> None:
    engine.run(limits.define(Limit("a", at_once=1), actor="ada", reason=None))
    forged, healthy = submit(engine, *(new_job(limits=("a",)) for _ in range(2)))
    broken = "'[null, \"a\"]'"
    if engine.dialect == "postgres":
        rows(engine, "ALTER DOMAIN fencerow.job_limits DROP CONSTRAINT job_limits")
        broken = "ARRAY[NULL, 'a']"
    rows(engine, f"UPDATE {{jobs}} SET limits = {broken} WHERE id = '{forged}'")

    (first, second) = (engine.run(handing.hand_over()) for _ in range(2))

    assert forged in first.news[0] and [job.id for job in second.queued] == [healthy]
    assert read(engine, forged).state == "waiting"
    told = {each.name: each.found for each in examine_keys(engine, Config(url="sqlite:///other.db"))}
    assert forged in told["jobs that never start"]
