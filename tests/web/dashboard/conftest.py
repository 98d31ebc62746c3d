"""A dashboard over an app on a database of each kind, and a visitor of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any

import httpx
import pytest
from jinja2 import Environment, FileSystemBytecodeCache
from jinja2.bccache import Bucket

from fencerow import App
from fencerow.config import Config
from fencerow.web.dashboard import pages as templates
from fencerow.web.dashboard.asgi import Dashboard
from fencerow.web.dashboard.roles import Role
from tests.kit.servers import kept
from tests.web.dashboard.visiting import Doorkeeper, Visits


class Compiled(FileSystemBytecodeCache):
    """Templates that are compiled once for all forks of a run and read once in each: for each dashboard it took a third
    of a test's time."""

    def __init__(self) -> None:
        super().__init__(str(kept()))
        self._codes: dict[tuple[str, str], CodeType] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._codes.get((bucket.key, bucket.checksum))
        if bucket.code is None:
            super().load_bytecode(bucket)
            self._keep(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        super().dump_bytecode(bucket)
        self._keep(bucket)

    def _keep(self, bucket: Bucket) -> None:
        if bucket.code is not None:
            self._codes[bucket.key, bucket.checksum] = bucket.code


@pytest.fixture(scope="session", autouse=True)
def _compiled_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(templates, "Environment", partial(Environment, bytecode_cache=Compiled()))
        yield


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
        declared(made)
        yield made


@pytest.fixture
def lite_app(migrated_path: Path) -> Iterator[App]:
    """An app where the database does not matter. It opens nothing by itself, and bounds no caller's pace."""
    config = Config(url=f"sqlite:///{migrated_path}", web_rate_per_second=0.0)
    with App(config=config, actor="ada") as made:
        declared(made)
        yield made


def declared(app: App) -> None:
    """The jobs that the tests submit."""
    app.job(name="pages", queue="documents")(pages)
    app.job(name="mail", queue="letters", attempts_max=1)(mail)


async def pages(path: str, copies: int = 1) -> dict[str, Any]:
    return {"path": path, "pages": 3 * copies}


async def mail(to: str) -> None:
    raise ValueError(f"nobody is called {to}")


@pytest.fixture
def door() -> Doorkeeper:
    return Doorkeeper(Role.ACT)


@pytest.fixture
async def board(app: App, door: Doorkeeper) -> AsyncIterator[Dashboard]:
    made = Dashboard(app, authorize=door, read_only=False)
    yield made
    await made.aclose()


@pytest.fixture
async def visits(board: Dashboard) -> AsyncIterator[Visits]:
    """A visitor without a network between, whose pages must keep to what every page of ours keeps to."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(board), base_url="http://127.0.0.1") as client:
        yield Visits(client)


@pytest.fixture
async def visits_lite(lite_app: App, door: Doorkeeper) -> AsyncIterator[Visits]:
    """The same where the database does not matter."""
    made = Dashboard(lite_app, authorize=door, read_only=False)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(made), base_url="http://127.0.0.1") as client:
        yield Visits(client)
    await made.aclose()
