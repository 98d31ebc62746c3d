"""Guards that a storm's workers can be made to lack. A storm that does not find such a bug proves nothing."""

from __future__ import annotations

from collections.abc import Mapping

from fencerow.core.db.engine import Engine
from fencerow.core.db.postgres import PostgresEngine
from fencerow.core.db.queries import Queries
from fencerow.core.db.sqlite import SqliteEngine
from fencerow_proof.history.engine import RecordingEngine

# Name of the bug: dialect: (query, the guard, what stands there instead).
BUGS: Mapping[str, Mapping[str, tuple[tuple[str, str, str], ...]]] = {
    # Who comes back after its lease is not told that it was declared dead, and finishes what belongs to nobody, or to
    # another attempt, by now.
    "nobody is fenced": {
        "postgres": (
            ("renew", "AND worker.state = 'alive'", ""),
            ("succeed", "AND job.state IS NOT DISTINCT FROM 'running'", ""),
            ("succeed", "AND job.holder = CAST(:holder AS uuid)", ""),
            ("succeed", "AND job.attempt = outcome.attempt", ""),
        ),
        "sqlite": (
            ("renew", "AND state = 'alive'", ""),
            ("succeed", "WHERE job.state = 'running'", "WHERE true"),
            ("succeed", "AND +job.holder = :holder", ""),
            ("succeed", "AND job.attempt = json_extract(o.value, '$.attempt')", ""),
        ),
    },
}


def beneath(engine: Engine) -> PostgresEngine | SqliteEngine:
    """The real engine under the one that records."""
    assert isinstance(engine, RecordingEngine)
    assert isinstance(engine.inner, PostgresEngine | SqliteEngine)
    return engine.inner


def spoil(engine: PostgresEngine | SqliteEngine, bug: str) -> None:
    """Take the guards out of the statements that this engine, and keepers made from it, will run."""
    engine.queries = spoiled(engine.queries, bug)


def spoiled(queries: Queries, bug: str) -> Queries:
    """These queries without the guards of the bug.

    Raises:
        ValueError: they have changed, and the guard is not where the bug looks for it.
    """
    for name, old, new in BUGS[bug][queries.dialect] if bug else ():
        queries = queries.altered(name, old, new)
    return queries
