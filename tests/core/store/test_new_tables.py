"""Tables that a later step of the schema makes are open to those who work with the earlier ones."""

from __future__ import annotations

from fencerow.core.db.postgres import PostgresEngine
from fencerow.core.store import store
from tests.retention.test_periods import first_step, query  # noqa: F401 (a fixture)


def test_who_works_with_the_tables_may_write_keys_windows_and_sources(
    first_step: PostgresEngine,  # noqa: F811
) -> None:
    query(first_step, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA fencerow TO pg_monitor")
    query(first_step, "GRANT INSERT, SELECT ON fencerow.jobs TO PUBLIC")
    store.migrate(first_step)

    found = query(
        first_step,
        "SELECT relname, CAST(acl.grantee AS regrole), count(*) FROM pg_class, aclexplode(relacl) AS acl"
        " WHERE relname IN ('once_keys', 'dedupe_windows', 'sources', 'row_leases', 'mutex_floor')"
        " AND acl.grantee <> relowner GROUP BY 1, 2",
    )
    assert {(str(name), str(role), count) for name, role, count in found} == {
        (name, "pg_monitor", 4)
        for name in ("once_keys", "dedupe_windows", "sources", "row_leases", "mutex_floor")
    }


def test_who_works_with_the_tables_may_write_limits_and_who_submits_may_see_them(
    first_step: PostgresEngine,  # noqa: F811
) -> None:
    query(first_step, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA fencerow TO pg_monitor")
    query(first_step, "GRANT INSERT (id, args) ON fencerow.jobs TO pg_read_all_settings")
    store.migrate(first_step)

    found = query(
        first_step,
        "SELECT role, has_table_privilege(role, 'fencerow.limits', 'SELECT'),"
        " has_table_privilege(role, 'fencerow.limits', 'UPDATE'),"
        " has_table_privilege(role, 'fencerow.limit_states', 'UPDATE')"
        " FROM unnest(ARRAY['pg_monitor', 'pg_read_all_settings']) AS role ORDER BY role",
    )
    assert found == [("pg_monitor", True, True, True), ("pg_read_all_settings", True, False, False)]


def test_who_may_submit_sees_what_was_submitted_again_and_who_may_repeat_leaves_it(
    first_step: PostgresEngine,  # noqa: F811
) -> None:
    query(first_step, "GRANT INSERT, SELECT (id) ON fencerow.jobs TO pg_monitor, pg_read_all_settings")
    query(first_step, "GRANT DELETE ON fencerow.jobs TO pg_monitor")
    query(first_step, "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC")
    store.migrate(first_step)

    found = query(
        first_step,
        "SELECT role, has_function_privilege(role, 'fencerow.refuse_repeated(uuid[])', 'EXECUTE'),"
        " has_column_privilege(role, 'fencerow.repeated_ids', 'id', 'SELECT'),"
        " has_table_privilege(role, 'fencerow.repeated_ids', 'INSERT')"
        " FROM unnest(ARRAY['pg_monitor', 'pg_read_all_settings']) AS role ORDER BY role",
    )
    assert found == [("pg_monitor", True, True, True), ("pg_read_all_settings", True, True, False)]
