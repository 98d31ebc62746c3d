"""One server for all checks, without what only a crash of the server would need, and a folder to write in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fencerow_proof.check.scratch_postgres import PRIVATE_SETTINGS
from tests.kit.environment import forget_settings
from tests.kit.servers import CopiedServer


@pytest.fixture(scope="session")
def empty_url() -> Iterator[str]:
    """An empty database beside which checks make theirs."""
    with CopiedServer(fast=True, settings=PRIVATE_SETTINGS) as server:
        yield server.create_database("empty")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a handler writes to a file lands here."""
    monkeypatch.chdir(tmp_path)
    forget_settings(monkeypatch)
