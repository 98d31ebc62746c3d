"""What a worker looks at when it starts: some of the doctor's checks, side by side, within a bound. It changes none."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import psycopg

from fencerow.core.config import CoreConfig
from fencerow.core.db.engine import Engine
from fencerow.core.db.postgres import PostgresEngine
from fencerow.core.db.probe import connect_postgres
from fencerow.core.db.sqlite import SqliteEngine
from fencerow.core.errors import FencerowError
from fencerow.core.finding import Finding, Level, failed, info, ok, warn
from fencerow.core.model.text import said_of
from fencerow.doctor import on_postgres, schema
from fencerow.doctor.connections import is_pooled
from fencerow.doctor.horizon.wal import examine_wal
from fencerow.doctor.on_sqlite import room

WITHIN_S = 2.0
EXTRAS: Final[Mapping[str, str]] = {
    "prometheus": "prometheus_client",
    "otel": "opentelemetry",
    "web": "starlette",
    "seal": "cryptography",
    "s3": "boto3",
}
Check = Callable[[], Iterable[Finding]]


@dataclass(slots=True)
class SelfTest:
    """What was found, in the order of the checks; `extras` are those that are installed."""

    findings: list[Finding] = field(default_factory=list)
    extras: list[str] = field(default_factory=list)
    took_s: float = 0.0

    @property
    def wrong(self) -> list[Finding]:
        """What somebody should do something about."""
        return [each for each in self.findings if each.level in (Level.WARN, Level.FAIL)]

    @property
    def told(self) -> str:
        """One line: each check with what was found where that says something."""
        return "; ".join(f"{each.name}: {each.found}" for each in self.findings if each.level is Level.OK)


def self_test(engine: Engine, config: CoreConfig, *, within_s: float = WITHIN_S) -> SelfTest:
    """Look at all of them at once, for so long at most: one that takes longer is told, and nobody waits for it.
    Whatever a check meets becomes a finding."""
    began = time.monotonic()
    checks = dict(_checks(engine, config))
    found: dict[str, list[Finding]] = {}
    threads = [
        threading.Thread(target=_look, args=(name, check, found), name=f"fencerow-look-{name}", daemon=True)
        for name, check in checks.items()
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(max(0.0, began + within_s - time.monotonic()))
    findings = [each for name in checks for each in found.get(name) or [_slow(name, within_s)]]
    extras = [name for name, module in EXTRAS.items() if find_spec(module) is not None]
    return SelfTest(findings, extras, time.monotonic() - began)


def _checks(engine: Engine, config: CoreConfig) -> Iterator[tuple[str, Check]]:
    yield "schema", lambda: schema.examine_schema(engine)
    if isinstance(engine, PostgresEngine):
        yield "clock", lambda: [_clock(engine, config)]
        yield "pooler", lambda: [_pooler(engine, config)]
        yield "listen", lambda: [on_postgres.listening(engine, config)]
    elif isinstance(engine, SqliteEngine):
        path = Path(engine.path)
        yield "room", lambda: [room(path)]
        yield "write-ahead log", lambda: list(examine_wal(path)) or [ok("write-ahead log", "none")]


def _look(name: str, check: Check, found: dict[str, list[Finding]]) -> None:
    try:
        found[name] = list(check())
    except FencerowError as error:
        found[name] = [failed(name, error)]
    except (psycopg.Error, sqlite3.Error, OSError) as error:
        found[name] = [
            warn(name, f"this check could not be made: {said_of(error)}"[:300], "ask `fencerow doctor`")
        ]


def _slow(name: str, within_s: float) -> Finding:
    return info(
        name, f"no answer within {within_s:g} s; the worker starts all the same", "ask `fencerow doctor`"
    )


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
