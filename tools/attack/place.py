"""A real `fencerow serve` of its own: with a database, tokens of each kind, a few jobs, and a look at all it keeps."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg import sql

from fencerow import App, Config
from fencerow.core.store import store
from fencerow.core.store.connect import open_engine
from fencerow.testing.clock import clock_of
from fencerow.testing.ports import free_port
from fencerow.testing.postgres import PostgresServer

APP = """
from fencerow import App

app = App()


@app.job(queue="documents")
async def pages(path: str, copies: int = 1) -> dict[str, int]:
    return {"pages": 3 * copies}


@app.job(queue="letters")
async def mail(to: str) -> None: ...
"""
NOTED = "api_tokens"  # the table that tells when a token was last used


@dataclass
class Place:
    """A gateway under attack."""

    kind: str
    url: str
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    log: Path = Path(os.devnull)
    tokens: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, str] = field(default_factory=dict)  # ids, by what is odd about them

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def memory_mib(self, of: str = "VmRSS") -> float:
        """What is resident now, or `VmHWM`: what was at most."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(of):
                return int(line.split()[1]) / 1024
        raise ProcessLookupError(self.pid)

    def tracebacks(self) -> int:
        """How many faults of its own the gateway told its log."""
        return self.log.read_text("utf-8", "replace").count("Traceback (most recent call last)")

    def kept(self) -> dict[str, tuple[int, str]]:
        """All tables: how many rows each has, and a digest of all that stands in them."""
        rows = _postgres_rows(self.url) if self.kind == "postgres" else _sqlite_rows(self.url)
        return {name: _digest(found) for name, found in rows if not name.endswith(NOTED)}


def _digest(rows: list[str]) -> tuple[int, str]:
    return len(rows), hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest()[:16]


def _sqlite_rows(url: str) -> Iterator[tuple[str, list[str]]]:
    path = url.removeprefix("sqlite:///")
    for file in (path, f"{path}-workers"):
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as open_file:
            tables = open_file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for (name,) in tables:
                yield name, [repr(row) for row in open_file.execute(f'SELECT * FROM "{name}"')]


def _postgres_rows(url: str) -> Iterator[tuple[str, list[str]]]:
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        for schema, name in tables:
            asked = sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(schema, name))
            yield name, [row[0] for row in connection.execute(asked)]


@contextmanager
def under_attack(
    kind: str, *, env: Mapping[str, str] | None = None, url: str | None = None
) -> Iterator[Place]:
    """A gateway on a database of its own (or on this one, which is migrated), with no bound on the rate."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fencerow-attack-")))
        if url is None and kind == "postgres":
            url = stack.enter_context(PostgresServer(fast=True)).create_role_and_schema()
        place = Place(kind, url or f"sqlite:///{folder}/attacked.db", log=folder / "serve.log")
        _furnished(place)
        (folder / "attacked.py").write_text(APP)
        place.process = stack.enter_context(_serving(place, folder, env or {}))
        yield place


@contextmanager
def _serving(place: Place, folder: Path, env: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    place.port = free_port()
    command = [str(Path(sys.executable).parent / "fencerow"), "serve", "--bind", str(place.port)]
    given = {
        **os.environ,
        "FENCEROW_URL": place.url,
        "FENCEROW_APP": "attacked:app",
        "FENCEROW_WEB_RATE_PER_SECOND": "0",
        "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]),
        **env,
    }
    with place.log.open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=given, stdout=log, stderr=log)
    try:
        while b"serving on" not in place.log.read_bytes():
            if process.poll() is not None:
                raise RuntimeError(f"the gateway ended\n{place.log.read_text()}")
            try:
                process.wait(0.05)
            except subprocess.TimeoutExpired:
                pass
        yield process
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _furnished(place: Place) -> None:
    """Tables, tokens and jobs, among them some that the narrow tokens may not see."""
    config = Config(url=place.url)
    engine = open_engine(config)
    try:
        store.migrate(engine, actor="attack")
    finally:
        engine.close()
    _make_tokens(place, config)
    with App(config=config, actor="attack") as app:
        pages = app.job(name="pages", queue="documents")(_job)
        mail = app.job(name="mail", queue="letters")(_job)
        for number in range(5):
            pages.submit(path=f"{number}.pdf")
        place.jobs["own"] = pages.using(key="k-1").submit(path="a.pdf").id
        place.jobs["foreign"] = mail.using(key="k-2").submit(path="b.pdf").id
        place.jobs["cancelled"] = mail.submit(path="c.pdf").id
        app.client.cancel(place.jobs["cancelled"])


def _make_tokens(place: Place, config: Config) -> None:
    with App(config=config, actor="attack") as app:
        made = app.client.tokens
        place.tokens["all"] = made.create("all", scopes=["admin"]).token
        for scope in ("submit", "signal", "read", "cancel", "operate"):
            place.tokens[scope] = made.create(scope, scopes=[scope]).token
        place.tokens["narrow"] = made.create(
            "narrow", scopes=["submit", "operate", "cancel"], queues=["documents"]
        ).token
        revoked = made.create("revoked", scopes=["submit", "operate"])
        place.tokens["revoked"] = revoked.token
        made.revoke(revoked.record.id)
        clock = clock_of(app.engine)
        clock.advance(-3600)  # so this one was made an hour ago
        place.tokens["expired"] = made.create("expired", scopes=["submit", "operate"], expires_s=60).token
        clock.close()


async def _job(path: str) -> None: ...
