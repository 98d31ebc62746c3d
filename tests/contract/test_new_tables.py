"""Tables that a later step of the schema makes are open to those who work with the earlier ones."""

from __future__ import annotations

from fencerow.db.postgres import PostgresEngine
from fencerow.store import store
from tests.contract.test_periods import first_step, query  # noqa: F401 (a fixture)


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
