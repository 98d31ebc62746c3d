"""Which PostgreSQL a process of tests meets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fencerow.testing.pg_binaries import find_binaries
from tests.kit.environment import forget_settings
from tests.kit.servers import ENVIRONMENT, CopiedServer


def test_it_is_the_same_whichever_test_asks_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCEROW_PG_BIN", str(tmp_path))  # where none is

    assert CopiedServer().binaries == find_binaries(ENVIRONMENT)


def test_who_takes_settings_away_leaves_what_decides_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCEROW_PG_FROM", "wheel")
    monkeypatch.setenv("FENCEROW_SLOTS", "7")

    forget_settings(monkeypatch)

    names = [name for name in os.environ if name.startswith("FENCEROW_")]
    assert "FENCEROW_PG_FROM" in names and "FENCEROW_SLOTS" not in names
