"""A gateway over an app on a database of each kind, and a caller of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from starlette.requests import Request

from fencerow import App
from fencerow.web.gateway.asgi import Gateway
from fencerow.web.gateway.server import Server
from fencerow.web.settings import WebSettings
from fencerow.web.tokens.scope import Grant, Scope
from tests.web.checked import Checked, document_of
from tests.web.gateway.serving import PATIENCE_S, Serve, Served, serving_on

ALL = Grant(id="t-1", name="tests", scopes=frozenset(Scope), queues=None)


@dataclass
class Door:
    """Who stands at the door: every request is this one's until a test says otherwise."""

    grant: Grant | None = ALL

    async def __call__(self, _request: Request) -> Grant | None:
        return self.grant

    def only(self, *scopes: Scope, queues: set[str] | None = None) -> None:
        """From now on callers may do no more than this."""
        self.grant = msgspec.structs.replace(
            ALL, scopes=frozenset(scopes), queues=None if queues is None else frozenset(queues)
        )


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
        made.job(name="pages", queue="documents")(pages)
        made.job(name="mail", queue="letters")(mail)
        yield made


@pytest.fixture
def lite_app(migrated_path: Path) -> App:
    """An app where the database does not matter. It opens nothing by itself."""
    made = App(f"sqlite:///{migrated_path}", actor="ada")
    made.job(name="pages", queue="documents")(pages)
    return made


async def pages(path: str, copies: int = 1) -> dict[str, Any]:
    return {"path": path, "pages": 3 * copies}


async def mail(to: str) -> None:
    raise ValueError(f"nobody is called {to}")


@pytest.fixture
def door() -> Door:
    return Door()


@pytest.fixture
def gateway(app: App, door: Door) -> Gateway:
    return Gateway(app, authorize=door)


@pytest.fixture
async def http(gateway: Gateway) -> AsyncIterator[httpx.AsyncClient]:
    """A caller without a network between; each answer must be one that the OpenAPI document tells of."""
    async with calling(gateway) as made:
        yield made


def calling(gateway: Gateway, host: Any = None, base: str = "") -> httpx.AsyncClient:
    """A caller of a gateway, also of one that a host has mounted below a path."""
    transport = Checked(httpx.ASGITransport(host or gateway), document_of(gateway), base=base)
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")


@pytest.fixture
async def open_app(lite_app: App) -> AsyncIterator[App]:
    async with lite_app:
        yield lite_app


@pytest.fixture
def serve(open_app: App, door: Door) -> Serve:
    """A server with these settings."""

    def with_these(**wanted: Any) -> contextlib.AbstractAsyncContextManager[Served]:
        for name, value in wanted.items():
            object.__setattr__(open_app.config, name, value)
        settings = replace(WebSettings.of(open_app.config), web_drain_s=PATIENCE_S)
        return serving_on(Server(Gateway(open_app, authorize=door), settings))

    return with_these


@pytest.fixture
async def served(serve: Serve) -> AsyncIterator[Served]:
    async with serve() as found:
        yield found


async def ended(app: App, job_id: str) -> None:
    """Let a worker run what is due until this job has ended."""
    async with asyncio.timeout(60), app.worker():
        await app.client.await_ended(job_id)
