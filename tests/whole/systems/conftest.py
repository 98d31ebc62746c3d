"""Fixtures of the rebuilt systems: each scenario on SQLite and on PostgreSQL, with a world outside of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.migrations.conftest import ground, shard_databases  # noqa: F401 (fixtures)
from tests.whole.systems.outside import FOLDER
from tests.whole.systems.stage import Stage


@pytest.fixture(autouse=True)
def _outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Services of the test's own, which answer well until their script says otherwise."""
    monkeypatch.setenv(FOLDER, str(tmp_path))


@pytest.fixture
async def stage(
    request: pytest.FixtureRequest, url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Stage]:
    """The module's `SYSTEM`, opened. A module whose system needs more than that has a fixture of its own."""
    made = Stage(request.module.SYSTEM, url, monkeypatch)
    await made.open()
    yield made
    await made.close()
