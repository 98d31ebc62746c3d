"""The examination: reach the database, then each group of checks; one that breaks does not hide the others."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, runtime_checkable

import psycopg

from fencerow.core.config import CoreConfig
from fencerow.core.errors import Busy, DatabaseError, FencerowError, Unavailable
from fencerow.core.finding import Finding, Level, fail, failed, info, ok
from fencerow.core.store.connect import DEFAULT_URL, open_engine
from fencerow.core.wing import Check, wings
from fencerow.db.engine import Traits
from fencerow.db.faults import first_line
from fencerow.db.postgres import PostgresEngine
from fencerow.db.probe import reach_postgres
from fencerow.db.probe_sqlite import reach_sqlite
from fencerow.db.queries import load, postgres_names, sqlite_names
from fencerow.db.sqlite import SqliteEngine
from fencerow.db.text import said_of
from fencerow.db.url import PostgresUrl, SqliteUrl, masked, parse_url
from fencerow.doctor import backlog, schema
from fencerow.doctor.connections import examine_connections
from fencerow.doctor.horizon.wal import examine_wal
from fencerow.doctor.on_postgres import examine_postgres
from fencerow.doctor.on_sqlite import examine_sqlite, file_findings
from fencerow.doctor.shape import examine_shape

PACKAGE = "fencerow.doctor"


@runtime_checkable
class HasChecks(Protocol):
    """An application that knows more than its settings say."""

    def checks(self) -> Sequence[Check]:
        """What is looked at in place of the checks of these names."""
        ...


def examine(config: CoreConfig, of_app: Sequence[Check] = ()) -> list[Finding]:
    """Everything that can be seen from here. Changes nothing but for one NOTIFY to ourselves.

    `of_app`: checks of an application, in place of those of the same names.

    Raises:
        NoDatabase, UrlError: the settings name no database.
    """
    engine = open_engine(config)
    reached = list(_guarded("reachable", lambda: _reached(config)))
    if any(each.level == "fail" for each in reached):
        engine.close()
        return reached
    try:
        return [*reached, *_until_gone(_checks(engine, config, of_app), engine.traits)]
    finally:
        engine.close()


def _until_gone(found: Iterable[Finding], traits: Traits) -> Iterator[Finding]:
    """No check after one that the database did not answer: each would wait as long for the same. A server may be busy
    with what one of them asks alone; a file that somebody keeps locked is so for all."""
    gone = (Unavailable.code, Busy.code) if traits.one_writer else (Unavailable.code,)
    for each in found:
        yield each
        if each.level is Level.FAIL and each.found.partition(":")[0] in gone:
            yield info("other checks", f"none was made after {each.name}", "repeat when the database answers")
            return


def _checks(
    engine: PostgresEngine | SqliteEngine, config: CoreConfig, of_app: Sequence[Check]
) -> Iterable[Finding]:
    if isinstance(engine, PostgresEngine):
        with_queries(engine)
        yield from _guarded("server", lambda: examine_postgres(engine, config))
    else:
        foreign = list(_guarded("schema", lambda: schema.foreign(engine)))
        if foreign:
            yield from foreign
            return
        with_queries(engine)
        yield from _guarded("file", lambda: examine_sqlite(engine))
        yield from _guarded("write-ahead log", lambda: examine_wal(Path(sqlite_path(config))))
    state = list(_guarded("schema", lambda: schema.examine_schema(engine)))
    yield from state
    if isinstance(engine, PostgresEngine):
        yield from _guarded("connections", lambda: _connections(engine, config, state))
    if all(each.level != "fail" for each in state):
        yield from _guarded("tables", lambda: examine_shape(engine))
        yield from _guarded("jobs", lambda: backlog.examine_backlog(engine, config))
        named = {check.name: check for wing in wings() for check in wing.checks()}
        for check in (named | {check.name: check for check in of_app}).values():
            yield from _guarded(check.name, partial(check.examine, engine, config))


def sqlite_path(config: CoreConfig) -> str:
    """Where the file of SQLite lies."""
    url = parse_url(config.url or DEFAULT_URL)
    assert isinstance(url, SqliteUrl)
    return url.path


def _connections(
    engine: PostgresEngine, config: CoreConfig, schema_found: Iterable[Finding]
) -> Iterable[Finding]:
    """Without our tables no worker lives here."""
    is_ours = all(each.level != "fail" for each in schema_found)
    return examine_connections(engine, config, backlog.living(engine) if is_ours else [])


def with_queries(engine: PostgresEngine | SqliteEngine) -> None:
    """Let an engine know the queries of the doctor."""
    names = sqlite_names(engine.prefix) if isinstance(engine, SqliteEngine) else postgres_names(engine.schema)
    engine.queries = engine.queries.joined(load(PACKAGE, engine.dialect, engine.dialect, names))


def _reached(config: CoreConfig) -> Iterable[Finding]:
    url = parse_url(config.url or "")
    if isinstance(url, PostgresUrl):
        reach_postgres(url.conninfo, config.connect_timeout_s)
        return [ok("reachable", masked(url.conninfo))]
    path = Path(url.path)
    reach_sqlite(path)
    return [ok("reachable", str(path.absolute())), *file_findings(path.absolute())]


def _guarded(name: str, check: Callable[[], Iterable[Finding]]) -> Iterable[Finding]:
    """Findings one by one, so that what was seen before a check broke is kept."""
    try:
        yield from check()
    except FencerowError as error:
        yield failed(name, error)
    except (psycopg.Error, sqlite3.Error) as error:
        yield failed(
            name, DatabaseError("a check was refused", first_line(error), "look at the database's log")
        )
    except Exception as error:  # a store of the user's may raise what it likes, and a row be damaged
        yield fail(
            name,
            f"this check broke: {said_of(error)}"[:300],
            "look at what it names; if that is none of yours, report it to Fencerow",
        )
