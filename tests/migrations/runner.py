"""A process that migrates, and may kill itself before or after its n-th statement, as hard as the kernel can."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal

from fencerow.db.queries import Queries, Query
from fencerow.db.run import Statement
from fencerow.migrations import Migrator
from fencerow.migrations.direct import PostgresDirect, SqliteDirect
from tests.kit.forking import context

When = Literal["before", "after"]


def start(
    shards: Mapping[str, str],
    folder: Path,
    *,
    die: tuple[When, int] | None = None,
    down: int | None = None,
    gate: Any = None,
    broken: bool = False,
    **options: Any,
) -> tuple[BaseProcess, Connection]:
    """Start one; what it did per shard, and how many statements it took, comes through the connection."""
    here, there = context.Pipe(duplex=False)
    process = context.Process(
        target=_migrate, args=(dict(shards), folder, die, down, gate, broken, options, there), daemon=True
    )
    process.start()
    there.close()
    return process, here


def killed(process: BaseProcess) -> bool:
    """Wait for its end; whether it killed itself."""
    process.join(60)
    return process.exitcode == -signal.SIGKILL


def _migrate(
    shards: dict[str, str],
    folder: Path,
    die: tuple[When, int] | None,
    down: int | None,
    gate: Any,
    broken: bool,
    options: dict[str, Any],
    told: Connection,
) -> None:
    count = [0]
    for kind in (PostgresDirect, SqliteDirect):
        _counted(kind, count, die)
        if broken:
            _committing_early(kind)
    migrator = Migrator(shards, folder, **options)
    if gate is not None:
        gate.wait(30)
    report = migrator.migrate() if down is None else migrator.down(down)
    told.send(([each.as_json() for each in report.shards], count[0]))


def _counted(kind: Any, count: list[int], die: tuple[When, int] | None) -> None:
    execute: Callable[[Any, Any], Any] = kind.execute

    def counting(self: Any, statement: Any) -> Any:
        count[0] += 1
        _perhaps("before", count[0], die)
        rows = execute(self, statement)
        _perhaps("after", count[0], die)
        return rows

    kind.execute = counting


def _committing_early(kind: Any) -> None:
    """A ledger in another transaction than its migration: what the guards are there against."""
    execute: Callable[[Any, Any], Any] = kind.execute

    def early(self: Any, statement: Any) -> Any:
        if statement.name == "note_migrated":
            execute(self, Statement("commit_early", {}))
        return execute(self, statement)

    kind.execute = early
    early_query = Query("commit_early", ("COMMIT", "BEGIN"), ())
    init = kind.__init__

    def opened(self: Any, place: Any, queries: Queries, **options: Any) -> None:
        init(self, place, Queries(queries.dialect, {**queries, "commit_early": early_query}), **options)

    kind.__init__ = opened


def _perhaps(when: When, number: int, die: tuple[When, int] | None) -> None:
    if die == (when, number):
        os.kill(os.getpid(), signal.SIGKILL)
