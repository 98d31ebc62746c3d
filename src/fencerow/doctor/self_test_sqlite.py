"""What a worker looks at when it starts, of a SQLite file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from fencerow.core.config import CoreConfig
from fencerow.core.finding import Finding, ok
from fencerow.db.engine import Engine
from fencerow.db.sqlite import SqliteEngine
from fencerow.doctor.horizon.wal import NAME, examine_wal
from fencerow.doctor.on_sqlite import room


def checks(engine: Engine, config: CoreConfig) -> Iterator[tuple[str, Callable[[], Iterable[Finding]]]]:  # noqa: ARG001 - as of a server
    """The room on its disk, and its write-ahead log."""
    assert isinstance(engine, SqliteEngine)
    yield "room", lambda: [room(engine.path)]
    yield NAME, lambda: list(examine_wal(engine.path)) or [ok(NAME, "none")]
