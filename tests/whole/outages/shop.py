"""A small program on one database: payments are written by `job.transaction()`, and each number is paid once."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from fencerow import App, Backoff, Config, Defaults, Job, Worker
from fencerow.core.telemetry import Fact
from fencerow.db.postgres import PostgresEngine
from fencerow.db.queries import postgres_names, qualified, sqlite_names
from fencerow_proof.arena.invariants import together
from tests.kit.pace import PATIENCE_S

# An outage may cost a running job an attempt; how many of them it may cost is not asked here.
PATIENT = Defaults(attempts_max=500, backoff=Backoff(base_s=0.05, cap_s=0.2))
SETTINGS: dict[str, Any] = {"sweep_s": 1.0, "poll_max_s": 0.2, "lease_s": 30.0, "renew_s": 1.0}

Row = tuple[Any, ...]


class Shop:
    """An app with the same jobs as every other shop on this database. Each worker has a shop of its own."""

    def __init__(self, url: str, **settings: Any) -> None:
        self.app = App(url, config=Config(**{**SETTINGS, **settings}), defaults=PATIENT)
        self._is_postgres = isinstance(self.app.engine, PostgresEngine)
        self.paid = "fencerow.paid" if self._is_postgres else "paid"
        self.succeeded_at: list[float] = []  # by time.monotonic()
        self.happened: Counter[str] = Counter()
        self.app.telemetry.listen(self._hear)
        insert = f"INSERT INTO {self.paid} VALUES ({{}}, {{}})"

        @self.app.job
        def pay(job: Job, n: int) -> int:
            with job.transaction() as connection:
                connection.execute(insert.format(n, job.attempt))
            return n

        @self.app.job
        async def pay_soon(job: Job, n: int) -> int:
            async with job.transaction() as connection:
                done = connection.execute(insert.format(n, job.attempt))
                if inspect.isawaitable(done):
                    await done
                await asyncio.sleep(0)
            return n

        @self.app.job
        async def look(n: int) -> int:
            return n

        self.pay, self.pay_soon, self.look = pay, pay_soon, look
        self.jobs = itertools.cycle([pay, pay_soon, look])

    def prepare(self) -> None:
        """Make the tables."""
        self.app.migrate()
        self.ask(f"CREATE TABLE {self.paid} (n integer, attempt integer)")

    def ask(self, text: str) -> list[Row]:
        """Run one statement, committed."""
        with self.app.engine.session() as session:
            cursor = session.connection.execute(text)
            return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    def jobs_by_number(self) -> dict[int, list[Row]]:
        """(id, name, state) of all jobs, live and finished, by the number they were submitted with."""
        found: dict[int, list[Row]] = {}
        for job_id, name, state, args in self.ask(
            self._named("SELECT id, name, state, args FROM fencerow.all_jobs")
        ):
            arguments = json.loads(args) if isinstance(args, str) else args
            found.setdefault(arguments["n"], []).append((str(job_id), name, state))
        return found

    def payments(self) -> Counter[int]:
        """How often each number was paid."""
        return Counter(row[0] for row in self.ask(f"SELECT n FROM {self.paid}"))

    def broken_invariants(self) -> list[Row]:
        rename = postgres_names("fencerow") if self._is_postgres else sqlite_names("fencerow_")
        return self.ask(together(rename))

    async def all_ended(self, within_s: float = PATIENCE_S) -> None:
        """Wait until no job is left to do."""
        deadline = time.monotonic() + within_s
        text = self._named("SELECT count(*) FROM fencerow.jobs")
        while (left := (await asyncio.to_thread(self.ask, text))[0][0]) > 0:
            assert time.monotonic() < deadline, f"{left} jobs had not ended after {within_s} s"
            await asyncio.sleep(0.1)

    async def first_success_after(self, moment: float, within_s: float = PATIENCE_S) -> float:
        """Seconds from then until a worker of this shop told of a success."""
        while not (later := [at for at in self.succeeded_at if at > moment]):
            assert time.monotonic() - moment < within_s, f"no job succeeded within {within_s} s"
            await asyncio.sleep(0.01)
        return later[0] - moment

    def _named(self, text: str) -> str:
        return qualified(text, postgres_names("fencerow") if self._is_postgres else sqlite_names("fencerow_"))

    def _hear(self, name: str, _facts: object) -> None:
        self.happened[name] += 1
        if name == Fact.SUCCEEDED:
            self.succeeded_at.append(time.monotonic())


@asynccontextmanager
async def staffed(*shops: Shop) -> AsyncIterator[list[Worker]]:
    """One worker per shop, until the block ends."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(shop.app.worker(slots=4)) for shop in shops]
