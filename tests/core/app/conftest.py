"""An app on a fresh migrated database of each kind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fencerow import App


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """A database for an app: migrated, in a SQLite file or in PostgreSQL."""
    if request.param == "postgres":
        made: str = request.getfixturevalue("lent_postgres_url")
        return made
    path: Path = request.getfixturevalue("migrated_path")
    return f"sqlite:///{path}"


@pytest.fixture
async def app(url: str) -> AsyncIterator[App]:
    async with App(url, actor="ada") as made:
        yield made


@pytest.fixture
def lite_app(migrated_path: Path) -> App:
    """An app where the database does not matter. It opens nothing by itself."""
    return App(f"sqlite:///{migrated_path}", actor="ada")
