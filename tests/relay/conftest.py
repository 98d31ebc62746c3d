"""An app on each engine, a Redis server and a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from fencerow import App
from tests.events.conftest import url_of
from tests.kit.jobs import AnyEngine
from tests.relay.stage import Cluster, RedisServer, app_at, redis_server


@pytest.fixture
async def app(engine: AnyEngine) -> AsyncIterator[App]:
    made = app_at(url_of(engine))
    yield made
    await made.aclose()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path) as made:
        yield made


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()
