"""What a worker says of itself when it starts: one entry of the log, for people a small table, for machines fields."""

from __future__ import annotations

import logging
import os
import platform
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path

from fencerow import __version__
from fencerow.core.app import JobsApp
from fencerow.core.config import CoreConfig
from fencerow.core.finding import Level
from fencerow.core.store.connect import DEFAULT_URL
from fencerow.core.worker.plain import Worker
from fencerow.db.text import amount
from fencerow.db.url import PostgresUrl, masked, parse_url
from fencerow.doctor.self_test import SelfTest, self_test

log = logging.getLogger("fencerow.worker")

NAMES_MAX = 20


def show(app: JobsApp, worker: Worker, *, more: Mapping[str, str] | None = None) -> None:
    """Log it. `more` stands at the end: what to do next, by its name.

    Raises:
        Unavailable: the database is gone.
    """
    if not log.isEnabledFor(logging.WARNING):
        return
    tested = self_test(app.engine, app.config)
    _warn(tested)
    if not log.isEnabledFor(logging.INFO):
        return
    handlers = app.handlers.values()
    batches = sorted(each.name for each in handlers if each.batch_max is not None)
    apart = sorted(each.name for each in handlers if each.process)
    plain = sorted({each.name for each in handlers} - {*batches, *apart})
    server, place = _database(app.config)
    groups = worker.slot_groups
    rows = {
        "database": place,
        "worker": f"{worker.name}, process {os.getpid()}",
        "queues": ", ".join(f"{'+'.join(queues)} ({amount(slots, 'slot')})" for queues, slots in groups),
        "jobs": _names(plain),
        "batches": _names(batches),
        "processes": _names(apart),
        "and also": "; ".join(each.told() for each in app.chores),
        "checked": tested.told,
        "extras": ", ".join(tested.extras),
        **(more or {}),
    }
    title = f"fencerow {__version__}, Python {platform.python_version()}, {server}"
    fields: dict[str, object] = {
        "version": __version__,
        "python": platform.python_version(),
        "server": server,
        "database": place,
        "worker": worker.name,
        "pid": os.getpid(),
        "slots": {"+".join(queues): slots for queues, slots in groups},
        "jobs_known": sorted(each.name for each in handlers),
        "batch_jobs": batches,
        "child_process_jobs": apart,
        "chores": [each.told() for each in app.chores],
        "checked": {each.name: each.found for each in tested.findings},
        "extras": tested.extras,
    }
    log.info("\n".join([title, *(f"{name:<11} {text}" for name, text in rows.items() if text)]), extra=fields)


def _warn(tested: SelfTest) -> None:
    """What is wrong, with what to do: one entry each, at a level that nobody turns off."""
    for each in tested.findings:
        if each.level is not Level.OK:
            log.warning("checked at the start: %s: %s; %s", each.name, each.found, each.fix)


def _database(config: CoreConfig) -> tuple[str, str]:
    """The server with its version, and where the tables lie, without a password."""
    url = parse_url(config.url or DEFAULT_URL)
    if isinstance(url, PostgresUrl):
        from fencerow.db.probe import postgres_version  # with its driver: only where it is used

        version = postgres_version(url.conninfo, config.connect_timeout_s)
        return f"PostgreSQL {version}", f"{masked(url.conninfo)}, schema {config.schema}"
    return f"SQLite {sqlite3.sqlite_version}", f"{Path(url.path).absolute()}, tables {config.table_prefix}*"


def _names(names: Iterable[str]) -> str:
    known = list(names)
    more = f" and {len(known) - NAMES_MAX} more" if len(known) > NAMES_MAX else ""
    return ", ".join(known[:NAMES_MAX]) + more
