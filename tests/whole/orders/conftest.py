"""The order service as its users run it: uvicorn, a supervisor with two workers, and a payment provider over HTTP."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pytest

from examples.orders import payments
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.testing.postgres import PostgresServer
from tests.house.tree import ROOT
from tests.kit.loops import module_path
from tests.kit.pace import PATIENCE_S, slower
from tests.kit.stopping import signals_heeded

QUICK = {
    "FENCEROW_LEASE_S": f"{slower(2.0)}",
    "FENCEROW_RENEW_S": "0.4",
    "FENCEROW_SWEEP_S": "0.3",
    "FENCEROW_POLL_MAX_S": "0.2",
    "FENCEROW_PREFETCH_S": "0",  # what a killed worker had, runs alone in a process each
    "FENCEROW_SHUTDOWN_S": "20",
}
LISTENS = re.compile(r"running on (http://\S+)")

T = TypeVar("T")


def waited(found: Callable[[], T]) -> T:
    """What it returns, once that is anything."""
    deadline = time.monotonic() + PATIENCE_S
    while not (result := found()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return result


def is_there(pid: int) -> bool:
    """Whether such a process exists; a killed one is still on the list of workers until its lease is over."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class Shop:
    """The processes of one service on one database."""

    def __init__(
        self, url: str, engine: SqliteEngine | PostgresEngine, folder: Path, books: payments.Books
    ) -> None:
        self.books = books
        self.folder = folder
        self.engine = engine
        self.provider: ThreadingHTTPServer = payments.serve(books)
        ours = {name: value for name, value in os.environ.items() if not name.startswith("FENCEROW_")}
        ours.pop("PYTHONDONTWRITEBYTECODE", None)  # ten processes would compile all they import, each anew
        self._environment = {
            **ours,
            **QUICK,
            "FENCEROW_URL": url,
            "PAYMENTS_URL": f"http://127.0.0.1:{self.provider.server_address[1]}",
            "ORDERS_MAILS": str(folder / "mails"),
            "PYTHONPATH": module_path(ROOT, ROOT / "src"),
        }
        self._running: list[subprocess.Popen[bytes]] = []
        self._start("api", "uvicorn", "examples.orders.api:api", "--port", "0")
        self.url = waited(lambda: "".join(LISTENS.findall(self.log("api"))))  # the tables are there, too
        worker = ["fencerow.cli.main", "worker", "-A", "examples.orders.service:app"]
        self.supervisor = self._start("workers", *worker, "--processes", "2", "--slots", "2")

    def _start(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("wb") as log, signals_heeded():
            command = [sys.executable, "-m", *words]
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._running.append(process)
        return process

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text("utf-8")

    def ask(self, method: str, path: str, data: object = None, **headers: str) -> tuple[int, Any]:
        """Status and answer of the service."""
        asked = urllib.request.Request(  # noqa: S310 (our own)
            self.url + path,
            method=method,
            data=None if data is None else json.dumps(data).encode(),
            headers={"Content-Type": "application/json", **headers},
        )
        try:
            with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:  # noqa: S310
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Ask the database itself."""
        with self.engine.session() as session:
            return [tuple(row) for row in session.connection.execute(statement).fetchall()]

    def in_state(self, state: str) -> int:
        """How many orders are in that state."""
        return int(self.rows(f"SELECT count(*) FROM orders WHERE state = '{state}'")[0][0])

    def workers(self) -> set[int]:
        """The process ids of the workers that are alive, of two that are."""
        return waited(lambda: found if len(found := self._alive()) == 2 else set())

    def _alive(self) -> set[int]:
        there = {each.pid for each in self.engine.run(store.list_workers(state="alive"))}
        return {pid for pid in there if is_there(pid)}

    def close(self) -> None:
        """All end in order, the workers first; what does not is killed."""
        self.books.release.set()
        try:
            for each in reversed(self._running):
                each.terminate()
                assert each.wait(PATIENCE_S) in (0, -signal.SIGTERM)
        finally:
            for each in self._running:
                each.kill()
                each.wait()
            self.provider.shutdown()
            self.provider.server_close()


@pytest.fixture(params=["sqlite", "postgres"])
def place(
    request: pytest.FixtureRequest, sqlite_path: Path
) -> Iterator[tuple[str, SqliteEngine | PostgresEngine]]:
    """A fresh database and its URL, in which the service may make tables of its own."""
    if request.param == "sqlite":
        yield f"sqlite:///{sqlite_path}", request.getfixturevalue("lite")
        return
    url = str(request.getfixturevalue("postgres_url"))
    server: PostgresServer = request.getfixturevalue("server")
    with server.connect(urlsplit(url).path[1:]) as connection:
        connection.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
    yield url, request.getfixturevalue("pg")


@pytest.fixture
def books() -> payments.Books:
    """The provider's. From the fifth capture on it keeps its answers to itself."""
    return payments.Books(hold_after=5)


@pytest.fixture
def shop(
    place: tuple[str, SqliteEngine | PostgresEngine], books: payments.Books, tmp_path: Path
) -> Iterator[Shop]:
    made = Shop(*place, tmp_path, books)
    yield made
    made.close()
