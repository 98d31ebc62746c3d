"""A migration of the test's own that builds indexes on tables in use, and a process that applies it.

`python -m tests.core.schema.growing URL [COUNT]`: with a COUNT it kills itself as hard as the kernel can, right before
the COUNT-th statement after the migrations that are there.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from fencerow.core.store import store
from fencerow.db import postgres_session
from fencerow.db.migration import Migration
from fencerow.db.postgres import PostgresEngine

# The first part cannot be repeated: whoever goes on after a crash must go on behind it.
MORE = Migration(
    9001,
    "schema_9001_more",
    """-- compatible_from: 1
SET LOCAL lock_timeout = '500ms';
ALTER TABLE fencerow.queues ADD COLUMN more text;

-- built concurrently: for the test
CREATE INDEX jobs_more ON fencerow.jobs (name) WHERE state = 'queued';
CREATE INDEX finished_jobs_more ON fencerow.finished_jobs USING gin ((CAST(tags AS jsonb)) jsonb_path_ops)
    WHERE tags IS NOT NULL;
""",
    1,
    "checksum of more",
)
KNOWN = [*store.known_migrations("postgres"), MORE]


def growing(url: str) -> PostgresEngine:
    """An engine whose code knows one more migration; it must be applied within `known()`."""
    queries = store.postgres_queries()
    found = {
        MORE.part(number): replace(queries.composed(MORE.part(number), part.text), users=False)
        for number, part in enumerate(MORE.parts)
    }
    return PostgresEngine(url, type(queries)("postgres", {**queries, **found}, queries.name_of))


def known() -> Any:
    return patch("fencerow.core.schema.migrate.known_migrations", lambda dialect: KNOWN)


def die_before(count: int) -> None:
    left = [count]
    execute = postgres_session.PostgresSession.execute

    def counted(self: Any, statement: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return execute(self, statement)

    postgres_session.PostgresSession.execute = counted  # type: ignore[method-assign]


def main(url: str, *rest: str) -> None:
    engine = growing(url)
    if rest:
        die_before(int(rest[0]))
    with known():
        done = store.migrate(engine, actor="grower")
    engine.close()
    sys.stdout.write(f"{len(done)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
