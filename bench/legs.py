"""Where does the time go between the call of `submit` and the first line of the handler?

    python bench/legs.py [jobs] [postgres|sqlite] [folder]

One job at a time, to an idle worker in another process, on a private server with fsync (or a file on disk). Each leg is
the time from the moment before it to its own: its median, its 90th and its 99th percentile in microseconds. The
clock is one that the processes of a machine share.

In a folder in memory the disk is left out. On a machine with other load, put the command behind `chrt -f 50`.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import Any

from fencerow import App, Config
from fencerow.bench.figure import percentile
from fencerow.bench.place import BenchDatabase, private_postgres, private_sqlite
from fencerow.core.worker.claimer import Claimer
from fencerow.core.worker.wakeups import WakeUps
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine

WARM = 50
PAUSE_S = (0.008, 0.016)
SHARES = (0.5, 0.9, 0.99)
LEGS = (
    ("inserted", "the insert is committed"),
    ("posted", "its wake-up is handed over"),
    ("sending", "the sender has it"),
    ("heard", "the event loop has heard"),
    ("claiming", "the claim is sent"),
    ("claimed", "the claim is answered"),
    ("started", "the handler's first line"),
)
ASIDE = (
    ("sent", "sending", "the sender's own round trip"),
    ("returned", "called", "the whole call of submit"),
)


class Stamps:
    """The last moment of each kind."""

    def __init__(self) -> None:
        self.latest: dict[str, int] = {}

    def now(self, kind: str) -> None:
        self.latest[kind] = time.monotonic_ns()

    def around(self, owner: Any, name: str, before: str | None, after: str | None) -> None:
        """Stamp each call of a plain function of a class."""
        original: Callable[..., Any] = getattr(owner, name)

        @wraps(original)
        def stamped(*args: Any, **kwargs: Any) -> Any:
            if before:
                self.now(before)
            result = original(*args, **kwargs)
            if after:
                self.now(after)
            return result

        setattr(owner, name, stamped)


def submitting(place: BenchDatabase, count: int) -> list[dict[str, int]]:
    """Submit so many jobs one by one and tell the moments of each."""
    stamps, found = Stamps(), []
    engine = PostgresEngine if place.kind == "postgres" else SqliteEngine
    stamps.around(engine, "run", None, "inserted")
    stamps.around(engine, "wake", "posted", "sent" if engine is SqliteEngine else None)
    if engine is PostgresEngine:
        stamps.around(engine, "_notify", "sending", "sent")
    app = App(config=place.config)

    @app.job(name="noop", queue="bench")
    async def noop() -> None: ...

    try:
        for _ in range(count):
            time.sleep(random.uniform(*PAUSE_S))
            stamps.now("called")
            noop.submit()
            stamps.now("returned")
            time.sleep(0.03)
            found.append(dict(stamps.latest))
    finally:
        app.close()
    return found


async def working(config: Config) -> None:
    """Run them, until nobody writes to us any more, and tell the moments of each."""
    stamps, found = Stamps(), list[dict[str, int]]()
    stamps.around(WakeUps, "hear", "heard", None)
    claim = Claimer._claim

    async def stamped(self: Claimer, operation: Any) -> Any:
        sent = time.monotonic_ns()
        jobs = await claim(self, operation)
        if jobs:
            stamps.latest["claiming"] = sent
            stamps.now("claimed")
        return jobs

    Claimer._claim = stamped  # type: ignore[method-assign]
    app = App(config=config)

    @app.job(name="noop", queue="bench")
    async def noop() -> None:
        stamps.now("started")
        found.append(dict(stamps.latest))

    async with app.worker():
        print(json.dumps("ready"), flush=True)
        await asyncio.to_thread(sys.stdin.read)
    await app.aclose()
    print(json.dumps(found), flush=True)


@contextmanager
def worker(place: BenchDatabase) -> Iterator[subprocess.Popen[str]]:
    environ = {**os.environ, "FENCEROW_URL": str(place.config.url), "FENCEROW_SCHEMA": place.config.schema}
    with subprocess.Popen(
        [sys.executable, __file__, "worker"],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process


def measured(place: BenchDatabase, count: int) -> Iterator[tuple[str, list[float]]]:
    """Each leg with its percentiles, in microseconds."""
    with worker(place) as process:
        time.sleep(0.5)
        ours = submitting(place, count + WARM)
        theirs = json.loads(process.communicate()[0])
    moments = [mine | its for mine, its in zip(ours, theirs, strict=True)][WARM:]
    kinds = ["called", *(kind for kind, _ in LEGS if all(kind in each for each in moments))]
    told = dict(LEGS)
    for before, kind in pairwise(kinds):
        yield _leg(told[kind], moments, before, kind)
    for kind, before, what in ASIDE:
        if all(kind in each and before in each for each in moments):
            yield _leg(f"aside: {what}", moments, before, kind)
    yield _leg("all of it", moments, "called", "started")


def _leg(what: str, moments: list[dict[str, int]], before: str, kind: str) -> tuple[str, list[float]]:
    taken = [(each[kind] - each[before]) / 1000 for each in moments]
    return what, [percentile(taken, share) for share in SHARES]


@contextmanager
def place_of(kind: str, folder: Path | None) -> Iterator[BenchDatabase]:
    made = private_sqlite(folder or Path.cwd()) if kind == "sqlite" else private_postgres(folder)
    with made as place:
        yield place


def main() -> None:
    if sys.argv[1:] == ["worker"]:
        asyncio.run(working(Config.load(os.environ)))
        return
    count, kind, *folder = [*sys.argv[1:], *("300", "postgres")[len(sys.argv) - 1 :]]
    with place_of(kind, Path(folder[0]) if folder else None) as place:
        print(place.about)
        for what, times in measured(place, int(count)):
            print(f"{what:38}" + "".join(f"{each:8,.0f}" for each in times))


if __name__ == "__main__":
    main()
