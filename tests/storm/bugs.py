"""Guards that a storm's workers can be made to lack. A storm that does not find such a bug proves nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fencerow import Config
from fencerow.db.postgres import PostgresEngine
from fencerow.db.queries import Queries
from fencerow.db.sqlite import SqliteEngine
from fencerow.store import store

# Name of the bug: dialect: (query, the guard, what stands there instead).
BUGS: Mapping[str, Mapping[str, tuple[tuple[str, str, str], ...]]] = {
    # Who comes back after its lease finishes what belongs to nobody, or to another attempt, by now.
    "success by the id alone": {
        "postgres": (
            ("succeed", "AND job.state = 'running'", ""),
            ("succeed", "AND job.holder = CAST(:holder AS uuid)", ""),
            ("succeed", "AND job.attempt = outcome.attempt", ""),
        ),
        "sqlite": (
            ("succeed", "WHERE job.state = 'running'", "WHERE true"),
            ("succeed", "AND +job.holder = :holder", ""),
            ("succeed", "AND job.attempt = json_extract(o.value, '$.attempt')", ""),
            ("succeed", "AND state = 'running'", ""),
            ("succeed", "AND +holder = :holder", ""),
            (
                "succeed",
                "WHERE (id, attempt) IN (SELECT json_extract(o.value, '$.id'), json_extract(o.value, '$.attempt')",
                "WHERE id IN (SELECT json_extract(o.value, '$.id')",
            ),
        ),
    },
}


def engine_with(bug: str, url: str, config: Config) -> PostgresEngine | SqliteEngine:
    """An engine for a worker; without a bug it is what an app would make of these settings."""
    if url.startswith("postgresql:"):
        return PostgresEngine(
            url,
            _altered(store.postgres_queries(), bug),
            pool_max=config.pool_max,
            connect_timeout_s=config.connect_timeout_s,
            statement_timeout_s=config.statement_timeout_s,
        )
    return SqliteEngine(
        Path(url.removeprefix("sqlite:///")),
        _altered(store.sqlite_queries(), bug),
        busy_timeout_s=config.busy_timeout_s,
    )


def _altered(queries: Queries, bug: str) -> Queries:
    for name, old, new in BUGS[bug][queries.dialect] if bug else ():
        queries = queries.altered(name, old, new)
    return queries
