"""Workers whose settings name their database, so that children find it."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow import Config
from fencerow.db.sqlite import SqliteEngine
from tests.core.worker.stage import quick
from tests.kit.jobs import AnyEngine
from tests.kit.pace import LONG_LEASE_S, PATIENCE_S

START_S_MAX = 600.0  # a longer one is refused


def settings(engine: AnyEngine, **changes: Any) -> Config:
    """Short periods, a lease that nobody loses, and the URL of a fixture's engine."""
    url = f"sqlite:///{engine.path}" if isinstance(engine, SqliteEngine) else engine.conninfo
    return quick(
        url=url, **{"lease_s": LONG_LEASE_S, "child_start_s": min(PATIENCE_S, START_S_MAX), **changes}
    )


@pytest.fixture
def config(engine: AnyEngine) -> Config:
    return settings(engine)
