"""What PostgreSQL's tables refuse at the door."""

from __future__ import annotations

import re

import psycopg
import pytest

from fencerow.cli.grants import SUBMITTED, grants
from fencerow.core.model.ids import new_id
from fencerow.db.postgres import PostgresEngine
from fencerow.operators import looking

# Each of these made a statement fail for every worker that met the row, or would say what is not so.
REFUSED = {
    "a limit that is no number": ("timeout_s", "'NaN'"),
    "a limit without end": ("timeout_s", "1e300"),
    "a limit below nothing": ("timeout_s", "-1"),
    "a retention without end": ("retention_s", "'Infinity'"),
    "due since ever": ("run_at", "'-infinity'"),
    "due at no time": ("run_at", "'infinity'"),
    "due before Rome": ("run_at", "'4000-01-01 BC'"),
    "submitted at no time": ("submitted_at", "'infinity'"),
    "never expiring": ("expires_at", "'infinity'"),
    "an attempt at the end of its type": ("attempt", "9223372036854775807"),
    "failures at the end of their type": ("failures", "2147483647"),
    "ended at no time": ("state", "'succeeded'"),
    "running for nobody": ("state", "'running'"),
    "held and not running": ("holder", "gen_random_uuid()"),
    "in a state of its own": ("state, ended_at", "'over', '2020-01-01'"),
    "a key without a scope": ("key", "'k'"),
    "a tag with a null character": ("tags", """'["\\u0000"]'"""),
    "metadata with half a character": ("metadata", """'{"a":"\\ud800"}'"""),
}


def insert(engine: PostgresEngine, column: str, value: str) -> str:
    """As a role inserts that was granted it, in plain SQL."""
    job_id = new_id()
    plain = {
        "id": f"'{job_id}'",
        "queue": "'mail'",
        "name": "'send'",
        "args": "'{}'",
        "args_bytes": "2",
        "run_at": "'2020-01-01'",
        "submitted_at": "'2020-01-01'",
        "attempts_max": "1",
        "crashes_max": "3",
        "snoozes_max": "3",
    }
    row = {**plain, column: value}
    text = f"INSERT INTO fencerow.jobs ({', '.join(row)}) VALUES ({', '.join(row.values())})"
    with engine.session() as session:
        session.connection.execute(text)
    return job_id


@pytest.mark.parametrize(("column", "value"), REFUSED.values(), ids=REFUSED)
def test_what_no_worker_can_work_with_is_refused(pg: PostgresEngine, column: str, value: str) -> None:
    with pytest.raises((psycopg.errors.CheckViolation, psycopg.DataError)):
        insert(pg, column, value)

    assert pg.run(looking.counts()) == []


@pytest.mark.parametrize(
    "changed", ["holder = gen_random_uuid()", "state = 'running'", "key = 'k'", "scope = 's'"]
)
def test_a_change_is_refused_as_a_new_row_is(pg: PostgresEngine, changed: str) -> None:
    """The guard is the condition of an index: a change that leaves all indexes alone would not meet it."""
    job_id = insert(pg, "priority", "0")

    with pg.session() as session, pytest.raises(psycopg.errors.CheckViolation):
        session.connection.execute(f"UPDATE fencerow.jobs SET {changed} WHERE id = '{job_id}'")


def test_the_guard_is_not_dropped_as_an_index_is(pg: PostgresEngine) -> None:
    with pg.session() as session, pytest.raises(psycopg.errors.DependentObjectsStillExist):
        session.connection.execute("DROP INDEX fencerow.jobs_state")


def test_who_may_submit_writes_only_what_a_submit_writes(pg: PostgresEngine) -> None:
    (columns,) = re.findall(r"INSERT INTO \S+jobs \(([^)]*)\)", " ".join(pg.queries["resubmit"].statements))

    assert re.sub(r"\s+", " ", columns).strip() == SUBMITTED
    assert f"GRANT INSERT ({SUBMITTED}), SELECT (id)" in grants("fencerow", worker="w", submit="s")
