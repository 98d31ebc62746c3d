"""A process that kills itself at one point of one operation."""

from __future__ import annotations

import os
import signal
from typing import NoReturn

from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow_proof.arena.crash import Point, ending
from tests.proof.crash.cases import CASES


def main(url: str, name: str, point: Point, offset_us: int) -> None:
    (operation,) = [case.operation for case in CASES if case.name == name]
    engine: PostgresEngine | SqliteEngine
    if url.startswith("postgresql://"):
        engine = PostgresEngine(url, store.postgres_queries())
    else:
        engine = SqliteEngine(url, store.sqlite_queries())
        engine.clock.offset_us = offset_us
    engine.run(ending(operation, point, die))
    die()


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")
