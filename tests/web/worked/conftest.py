"""An endpoint, an app whose jobs it works on a database of each kind, and a gateway for its callbacks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from fencerow import App
from fencerow.testing.clock import DatabaseClock, clock_of
from fencerow.web.gateway.asgi import Gateway
from tests.web.gateway.conftest import Door, calling, url  # noqa: F401 (a fixture)
from tests.web.worked.stage import SECRET, SECRET_ENV, Endpoint, config_for, endpoint_serving


@pytest.fixture(scope="module")
def serving() -> Iterator[Endpoint]:
    with endpoint_serving() as made:
        yield made


@pytest.fixture
def endpoint(serving: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    monkeypatch.setenv(SECRET_ENV, SECRET)
    serving.got.clear()
    serving.replies()
    serving.free.clear()
    serving.left.clear()
    return serving


@pytest.fixture
async def app(url: str, endpoint: Endpoint) -> AsyncIterator[App]:  # noqa: F811
    async with App(url, config=config_for(endpoint)) as made:
        yield made


@pytest.fixture
async def lite(migrated_path: Path, endpoint: Endpoint) -> AsyncIterator[App]:
    """An app where the database does not matter."""
    async with App(f"sqlite:///{migrated_path}", config=config_for(endpoint)) as made:
        yield made


@pytest.fixture
def clock(app: App) -> DatabaseClock:
    return clock_of(app.engine)


@pytest.fixture
async def http(app: App) -> AsyncIterator[httpx.AsyncClient]:
    """A caller of the gateway; each answer must be one that the OpenAPI document tells of."""
    async with calling(Gateway(app, authorize=Door())) as made:
        yield made


@pytest.fixture
async def http_lite(lite: App) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(Gateway(lite, authorize=Door())) as made:
        yield made
