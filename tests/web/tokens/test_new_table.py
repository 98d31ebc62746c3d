"""A migration opens the table of tokens to those who work with the others, and to nobody who only submits."""

from __future__ import annotations

from fencerow.core.db.postgres import PostgresEngine
from fencerow.core.store import store
from tests.retention.test_periods import first_step, query  # noqa: F401 (a fixture)


def test_who_works_with_the_tables_works_with_tokens_and_who_submits_sees_none(
    first_step: PostgresEngine,  # noqa: F811
) -> None:
    query(first_step, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA fencerow TO pg_monitor")
    query(first_step, "GRANT INSERT (id, args) ON fencerow.jobs TO pg_read_all_settings")
    store.migrate(first_step)

    found = query(
        first_step,
        "SELECT grantee, count(*) FROM information_schema.table_privileges"
        " WHERE table_name = 'api_tokens' AND grantee LIKE 'pg_%' GROUP BY grantee",
    )
    assert [tuple(row) for row in found] == [("pg_monitor", 4)]
