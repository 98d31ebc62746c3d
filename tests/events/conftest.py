"""An app for each engine, with settings that let a test go quickly."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from fencerow import App, Config
from fencerow.db.postgres import PostgresEngine
from tests.kit.jobs import AnyEngine


@pytest.fixture
async def app(engine: AnyEngine) -> AsyncIterator[App]:
    """An app on the migrated database of `engine`."""
    made = app_on(engine)
    yield made
    await made.aclose()


def app_on(engine: AnyEngine, **settings: object) -> App:
    """One more process, as far as the database can tell."""
    return app_at(url_of(engine), **settings)


def app_at(url: str, **settings: object) -> App:
    """The same from another process."""
    quick = {"lease_s": 3.0, "renew_s": 0.5, "poll_max_s": 0.2, "poll_min_s": 0.01, **settings}
    return App(url, config=Config(**quick))  # type: ignore[arg-type]


def url_of(engine: AnyEngine) -> str:
    """Where another process finds it."""
    return engine.conninfo if isinstance(engine, PostgresEngine) else f"sqlite:///{engine.path}"
