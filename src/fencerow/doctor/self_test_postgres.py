"""What a worker looks at when it starts, of a PostgreSQL server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from fencerow.core.config import CoreConfig
from fencerow.core.finding import Finding, ok, warn
from fencerow.db.engine import Engine
from fencerow.db.postgres import PostgresEngine
from fencerow.db.probe import connect_postgres
from fencerow.doctor import on_postgres
from fencerow.doctor.connections import is_pooled


def checks(engine: Engine, config: CoreConfig) -> Iterator[tuple[str, Callable[[], Iterable[Finding]]]]:
    """The clock, a pooler, and whether LISTEN hears."""
    assert isinstance(engine, PostgresEngine)
    yield "clock", lambda: [_clock(engine, config)]
    yield "pooler", lambda: [_pooler(engine, config)]
    yield "listen", lambda: [on_postgres.listening(engine, config)]


def _clock(engine: PostgresEngine, config: CoreConfig) -> Finding:
    with connect_postgres(engine.conninfo, config.connect_timeout_s) as connection:
        before = time.time_ns() // 1000
        row = connection.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()
        after = time.time_ns() // 1000
    assert row is not None
    return on_postgres.clock(int(row[0] * 1_000_000), (before + after) // 2, (after - before) / 2e6)


def _pooler(engine: PostgresEngine, config: CoreConfig) -> Finding:
    if not is_pooled(engine.conninfo, config.connect_timeout_s):
        return ok("pooler", "none")
    if config.listen_url:
        return ok("pooler", "between us and the server; LISTEN goes past it")
    return warn(
        "pooler",
        "one stands between us and the server, and FENCEROW_LISTEN_URL is missing",
        "name the server itself there, so that wake-ups arrive; polling goes on, up to poll_max_s later",
    )
