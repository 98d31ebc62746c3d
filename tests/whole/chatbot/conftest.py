"""The chatbot as a process of its own would load it: from the environment, with the world outside in a thread."""

from __future__ import annotations

import asyncio
import importlib
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import cached_property
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest

from examples.chatbot.outside import Handler, World
from fencerow import App
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.testing.clock import DatabaseClock, clock_of
from fencerow.testing.postgres import PostgresServer
from tests.kit.databases import copy_files
from tests.kit.pace import PATIENCE_S

SHARDS = 4
QUICK = {"poll_min_s": 0.01, "poll_max_s": 0.05, "sweep_s": 0.1, "lease_s": 3600.0}


@dataclass
class Chatbot:
    """Its modules, freshly loaded, and the world around it."""

    world: World
    modules: dict[str, ModuleType]

    def __getattr__(self, name: str) -> Any:
        return self.modules[name]

    @property
    def app(self) -> App:
        app: App = self.modules["base"].app
        return app

    @cached_property
    def clock(self) -> DatabaseClock:
        engine = self.app.engine
        assert isinstance(engine, SqliteEngine | PostgresEngine)
        return clock_of(engine)

    def rows(self, statement: str) -> list[Any]:
        """Ask the app's own database."""
        with self.base.connected() as db:
            found: list[Any] = self.base.execute(db, statement)
            return found

    async def work(self) -> None:
        """A worker runs what is due, and goes."""
        async with asyncio.timeout(PATIENCE_S):
            await self.app.worker().run(until_idle=True)


@pytest.fixture
def databases(
    request: pytest.FixtureRequest, sqlite_path: Path, _lite_template: Path
) -> Iterator[tuple[str, list[str]]]:
    """The URL of the app's database and those of the shards: files, unless PostgreSQL is asked for."""
    if getattr(request, "param", "sqlite") == "sqlite":
        folder = sqlite_path.parent
        copy_files(_lite_template, folder / "chatbot.db")
        yield f"sqlite:///{folder}/chatbot.db", [f"sqlite:///{folder}/m{n}.db" for n in range(SHARDS)]
        return
    found = str(request.getfixturevalue("postgres_url"))
    server: PostgresServer = request.getfixturevalue("server")
    base = urlsplit(found)
    names = [f"{base.path[1:]}_m{number}" for number in range(SHARDS)]
    for name in names:
        server.create_database(name)
    for name in (base.path[1:], *names):
        with server.connect(name) as connection:
            # The chatbot has tables of its own beside ours.
            connection.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
    yield found, [base._replace(path=f"/{name}").geturl() for name in names]
    for name in names:
        server.drop_database(name)


@pytest.fixture
def outside() -> Iterator[tuple[World, str]]:
    """The world outside, without a process."""
    handler: type[Handler] = type("Handled", (Handler,), {"world": World()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield handler.world, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
async def chatbot(
    databases: tuple[str, list[str]], outside: tuple[World, str], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Chatbot]:
    """The chatbot on fresh databases that have their steps."""
    world, url = outside
    monkeypatch.setenv("FENCEROW_URL", databases[0])
    monkeypatch.setenv("CHATBOT_SHARDS", " ".join(databases[1]))
    monkeypatch.setenv("CHATBOT_OUTSIDE", url)
    for name, value in QUICK.items():
        monkeypatch.setenv(f"FENCEROW_{name.upper()}", str(value))
    names = ("base", "shards", "messages", "knowledge", "broadcast", "inbound", "receiver")
    for name in names:
        monkeypatch.delitem(sys.modules, f"examples.chatbot.{name}", raising=False)
    modules = {name: importlib.import_module(f"examples.chatbot.{name}") for name in names}
    made = Chatbot(world, modules)
    made.app.check_or_create()
    made.app.declare_limits()
    made.shards.migrate()
    yield made
    await made.app.aclose()
    for name in names:
        sys.modules.pop(f"examples.chatbot.{name}", None)
