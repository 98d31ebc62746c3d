"""What a twin of the guide runs in: a database, an outside service, and points at which something happens.

A point is the begin or the commit of a transaction of `connect()`, or a call outside. What happens there is planned by
the order that is played: the other one runs as a whole, or this one dies.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from fencerow import App, Backoff, Config, Defaults, Handle, Job
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.events import EventBus
from fencerow.testing.clock import clock_of
from tests.kit.pace import PATIENCE_S
from tests.whole.guide.page import Twin

QUICK = {"poll_min_s": 0.01, "poll_max_s": 0.05, "sweep_s": 0.1, "cancel_raise_s": 0.1, "cancel_kill_s": 0.1}


class Death(BaseException):
    """The process ends here. What was not committed never was."""


class Outside:
    """A service that does what it is asked: once per key if it is given one, and never for an old token."""

    def __init__(self, reached: Callable[[str], None]) -> None:
        self.done: list[tuple[str, str]] = []
        self.calls = 0
        self.kept: dict[str, str] = {}
        self._keys: set[str] = set()
        self._token = 0
        self._reached = reached

    def send(self, to: str, text: str = "", *, key: str | None = None) -> str:
        self._reached(f"before send {to}")
        self.calls += 1
        if key is None or key not in self._keys:
            self.done.append((to, text))
            self._keys.add(key or "")
        self._reached(f"after send {to}")
        return f"{text or to} done"

    def put(self, name: str, text: str, *, token: int | None = None) -> None:
        """Keep a text under a name. Who names a lower token than it has seen is refused."""
        if token is not None and token < self._token:
            return
        self._token = token or self._token
        self.kept[name] = text


class Scene:
    """One twin on one fresh database."""

    def __init__(self, folder: Path, twin: Twin, url: str | None = None) -> None:
        self.folder = folder
        self.file = folder / "guide.db"
        config = Config.load({}, **QUICK)
        self.app = App(
            url or f"sqlite:///{self.file}",
            config=config,
            defaults=Defaults(attempts_max=2, backoff=Backoff(base_s=0, jitter=0)),
        )
        self._plans: list[tuple[str, Callable[[], None]]] = []
        self._watchers: list[tuple[str, Callable[[], None]]] = []
        self.outside = Outside(self._reached)
        self.names: dict[str, Any] = {
            "__name__": "guide",
            "app": self.app,
            "Job": Job,
            "connect": self.connect,
            "outside": self.outside,
            "folder": folder,
        }
        self.app.check_or_create()
        self._twin = twin

    @property
    def kind(self) -> str:
        """Which twin is run."""
        return self._twin.kind

    @property
    def conninfo(self) -> str:
        """Of the scene's database on PostgreSQL."""
        engine = self.app.engine
        assert isinstance(engine, PostgresEngine)
        return engine.conninfo

    def load(self) -> None:
        """Run the twin's block: it defines what the order calls."""
        exec(compile(self._twin.code, f"safe-handlers.md ({self._twin.kind})", "exec"), self.names)  # noqa: S102

    def __getitem__(self, name: str) -> Any:
        return self.names[name]

    def close(self) -> None:
        self.app.engine.close()

    # --- the database ------------------------------------------------------------------------------

    @contextmanager
    def connect(self) -> Iterator[sqlite3.Connection]:
        """A transaction of the user's own; leaving commits, an error rolls back."""
        with closing(sqlite3.connect(self.file, timeout=5, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            self._reached("began")
            with db:
                yield db
            self._reached("after commit")

    def sql(self, statement: str, *values: Any, timeout_s: float = 5.0) -> list[Any]:
        """A statement of the test's own."""
        with closing(sqlite3.connect(self.file, timeout=timeout_s)) as db, db:
            return db.execute(statement, values).fetchall()

    def one(self, statement: str) -> Any:
        return self.sql(statement)[0][0]

    def pass_time(self, seconds: float) -> None:
        engine = self.app.engine
        assert isinstance(engine, SqliteEngine)
        clock_of(engine).advance(seconds)

    # --- what happens when -------------------------------------------------------------------------

    def at(self, point: str, happens: Callable[[], None]) -> None:
        """Let this happen, once, at the first point whose name begins so."""
        self._plans.append((point, happens))

    def always(self, point: str, happens: Callable[[], None]) -> None:
        """Let this happen each time."""
        self._watchers.append((point, happens))

    def dies(self, point: str) -> None:
        self.at(point, _die)

    def at_end_of(self, handle: Handle[Any], happens: Callable[[], None]) -> None:
        """Let this happen when the job has ended, while the worker still runs others."""

        def ended(name: str, facts: Any) -> None:
            if name == "succeeded":
                happens()

        self.app.telemetry.listen(ended)

    def loses_answer(self, point: str) -> None:
        """The call outside is made, and its answer never comes."""
        self.at(point, _lose)

    def _reached(self, point: str) -> None:
        for begins, happens in self._watchers:
            if point.startswith(begins):
                happens()
        for plan in self._plans:
            if point.startswith(plan[0]):
                self._plans.remove(plan)
                plan[1]()
                return

    def meanwhile(self, call: Callable[[], object]) -> None:
        """Another program runs this as a whole, while the one that this is called in stands still."""
        with ThreadPoolExecutor(1) as threads:
            threads.submit(call).result(PATIENCE_S)

    # --- running -----------------------------------------------------------------------------------

    def killed(self, call: Callable[[], object]) -> None:
        """Run something that dies at the planned point."""
        try:
            call()
        except Death:
            assert not self._plans, "it died elsewhere"
        else:
            raise AssertionError("it did not reach the point at which it dies")

    def work(self) -> None:
        """A worker runs all that is due, also again after a failure, and goes."""

        async def run() -> None:
            async with asyncio.timeout(PATIENCE_S):
                await self.app.worker().run(until_idle=True)

        asyncio.run(run())
        assert not self._plans, "a planned point was never reached"

    def consume(self, group: str) -> None:
        """A worker delivers what was published until this group has acknowledged all of it, and goes."""
        bus = EventBus(self.app)

        async def ended() -> bool:
            lags = await bus.alag(group)
            if lags and lags[0].waiting:
                self.pass_time(2)  # what failed is delivered again a second later
            return bool(lags) and not lags[0].events and not lags[0].waiting

        async def run() -> None:
            async with asyncio.timeout(PATIENCE_S), self.app.worker():
                while not await ended():
                    await asyncio.sleep(0.02)

        asyncio.run(run())
        assert not self._plans, "a planned point was never reached"


def _die() -> None:
    raise Death


def _lose() -> None:
    raise TimeoutError("no answer")
