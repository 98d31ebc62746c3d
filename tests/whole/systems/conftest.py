"""Fixtures of the rebuilt systems: each scenario on SQLite and on PostgreSQL, with a world outside of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.migrations.conftest import ground, shard_databases  # noqa: F401 (fixtures)
from tests.whole.systems.outside import FOLDER


@pytest.fixture(autouse=True)
def _outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Services of the test's own, which answer well until their script says otherwise."""
    monkeypatch.setenv(FOLDER, str(tmp_path))
