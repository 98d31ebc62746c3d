"""What PostgreSQL's tables refuse at the door, and what becomes of such rows that came in before there was one."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg
import pytest

from fencerow.cli.grants import SUBMITTED, grants
from fencerow.core.db.postgres import PostgresEngine
from fencerow.core.model.ids import new_id
from fencerow.core.model.state import State
from fencerow.core.store import migrate as migrate_module
from fencerow.core.store import store
from fencerow.core.store.attempts import Mark, Success
from fencerow.operators import looking
from tests.conftest import postgres_engine
from tests.core.store.stage import rows
from tests.kit.jobs import claim, read, register

# Each of these once made a statement fail for every worker that met the row.
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
    "a tag with a null character": ("tags", """'["\\u0000"]'"""),
    "metadata with half a character": ("metadata", """'{"a":"\\ud800"}'"""),
}
BEFORE_THE_DOOR = 7
LONG_AGO_US = -(10**17)


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


def test_who_may_submit_writes_only_what_a_submit_writes(pg: PostgresEngine) -> None:
    (columns,) = re.findall(r"INSERT INTO \S+jobs \(([^)]*)\)", " ".join(pg.queries["resubmit"].statements))

    assert re.sub(r"\s+", " ", columns).strip() == SUBMITTED
    assert f"GRANT INSERT ({SUBMITTED}), SELECT (id)" in grants("fencerow", worker="w", submit="s")


@pytest.fixture
def earlier(empty_postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresEngine]:
    """A database from before the door."""
    with monkeypatch.context() as patch:
        known = store.known_migrations("postgres")
        patch.setattr(
            migrate_module,
            "known_migrations",
            lambda dialect: [step for step in known if step.version <= BEFORE_THE_DOOR],
        )
        engine = postgres_engine(empty_postgres_url)
        store.migrate(engine)
    yield engine
    engine.close()


def test_rows_that_are_there_are_mended_by_the_step_that_makes_the_door(earlier: PostgresEngine) -> None:
    holder = register(earlier)
    damaged = {insert(earlier, column, value): column for column, value in REFUSED.values()}
    healthy = insert(earlier, "tags", "'[\"kept\"]'")

    store.migrate(earlier)

    claimed = claim(earlier, holder, limit=50, marks=[Mark(0, run_at_us=LONG_AGO_US)])
    late = {job_id for job_id in damaged if read(earlier, job_id).state is State.QUEUED}
    assert {job.id for job in claimed} == damaged.keys() - late | {healthy}
    assert [damaged[job_id] for job_id in late] == ["run_at"], "only what is due at the end of dates waits"
    ended = earlier.run(
        store.succeed([Success(job.id, job.attempt, "null") for job in claimed], holder=holder)
    )
    assert {each.id for each in ended} == {job.id for job in claimed}
    assert read(earlier, healthy).tags == ["kept"]
    assert [row["convalidated"] for row in rows(earlier, CONSTRAINTS)] == [True] * 3


CONSTRAINTS = (
    "SELECT convalidated FROM pg_constraint"
    " WHERE conname IN ('jobs_numbers', 'jobs_instants', 'jobs_labels') ORDER BY conname"
)


def test_one_whose_end_is_moved_with_others_would_have_stopped_them(earlier: PostgresEngine) -> None:
    """A job that nobody can archive ends a sweep for all: it must not be there after the step."""
    strange = insert(earlier, "tags", """'["\\u0000"]'""")
    with earlier.session() as session:
        session.connection.execute("UPDATE fencerow.jobs SET expires_at = '2021-01-01'")
    with pytest.raises(psycopg.DataError), earlier.session() as session:  # what each archive does
        session.connection.execute("UPDATE fencerow.jobs SET state = 'failed', ended_at = submitted_at")
        session.connection.execute("INSERT INTO fencerow.finished_jobs SELECT * FROM fencerow.jobs")

    store.migrate(earlier)

    assert [each.id for each in earlier.run(store.expire(limit=10, actor=None))] == [strange]
