"""Where does the time go between the call of `submit` and the first line of the handler?

    python bench/legs.py [jobs] [postgres|sqlite] [folder]

One job at a time, from an event loop to an idle worker in another process, on a private server with fsync (or a file on
disk). Each leg is the time from the moment before it to its own: its median, its 90th and its 99th percentile in
microseconds. The clock is one that the processes of a machine share. A server that answers at once may take the very
processor of whoever sends: then its time is in the leg of the sending, and the one behind is as much shorter.

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
from fencerow.db.prepared import PreparedStatements
from fencerow.db.sqlite import SqliteEngine
from fencerow.db.wire import ConnectionWire

WARM = 50
PAUSE_S = (0.008, 0.016)
SHARES = (0.5, 0.9, 0.99)
LEGS = (
    ("sent", "the submit is sent"),
    ("heard", "the worker has heard"),
    ("claiming", "its claim is made"),
    ("asking", "the claim is sent"),
    ("brought", "the claim is answered"),
    ("started", "the handler's first line"),
)
ASIDE = (("returned", "called", "the whole call of submit"),)


class Stamps:
    """The last moment of each kind."""

    def __init__(self) -> None:
        self.latest: dict[str, int] = {}

    def now(self, kind: str) -> None:
        self.latest[kind] = time.monotonic_ns()

    def before(
        self, owner: Any, name: str, kind: str, *, when: Callable[..., bool] = lambda *_: True
    ) -> None:
        """Stamp each call of a function of a class, before it."""
        original: Callable[..., Any] = getattr(owner, name)

        @wraps(original)
        def stamped(*args: Any, **kwargs: Any) -> Any:
            if when(*args):
                self.now(kind)
            return original(*args, **kwargs)

        setattr(owner, name, stamped)


async def submitting(config: Config, count: int) -> None:
    """Submit so many jobs one by one and tell the moments of each."""
    stamps, found = Stamps(), list[dict[str, int]]()
    stamps.before(ConnectionWire, "ask", "sent")
    app = App(config=config)

    @app.job(name="noop", queue="bench")
    async def noop() -> None: ...

    async with app:
        for _ in range(count):
            await asyncio.sleep(random.uniform(*PAUSE_S))
            stamps.now("called")
            await noop.asubmit()
            stamps.now("returned")
            found.append(dict(stamps.latest))
            await asyncio.sleep(0.02)
    print(json.dumps(found), flush=True)


async def working(config: Config) -> None:
    """Run them, until nobody writes to us any more, and tell the moments of each."""
    stamps, found = Stamps(), list[dict[str, int]]()
    stamps.before(WakeUps, "hear", "heard")
    engine = PostgresEngine if str(config.url).startswith("postgres") else SqliteEngine
    name = "begin" if engine is PostgresEngine else "arun"
    stamps.before(engine, name, "claiming", when=lambda _, operation, *__: operation.name == "claim")
    stamps.before(
        PreparedStatements,
        "send",
        "asking",
        when=lambda _, __, message, *___: "claimed" in str(message.query),
    )
    stamps.before(Claimer, "_accept", "brought", when=lambda _, __, jobs, *___: bool(jobs))
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


def process(place: BenchDatabase, *role: str) -> subprocess.Popen[str]:
    environ = {**os.environ, "FENCEROW_URL": str(place.config.url), "FENCEROW_SCHEMA": place.config.schema}
    return subprocess.Popen(
        [sys.executable, __file__, *role],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def measured(place: BenchDatabase, count: int) -> Iterator[tuple[str, list[float]]]:
    """Each leg with its percentiles, in microseconds."""
    with process(place, "worker") as worker:
        assert worker.stdout is not None
        worker.stdout.readline()
        time.sleep(0.5)
        ours = json.loads(process(place, "submit", str(count + WARM)).communicate()[0])
        theirs = json.loads(worker.communicate()[0])
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
    if sys.argv[1:2] == ["worker"]:
        asyncio.run(working(Config.load(os.environ)))
        return
    if sys.argv[1:2] == ["submit"]:
        asyncio.run(submitting(Config.load(os.environ), int(sys.argv[2])))
        return
    count, kind, *folder = [*sys.argv[1:], *("300", "postgres")[len(sys.argv) - 1 :]]
    with place_of(kind, Path(folder[0]) if folder else None) as place:
        print(place.about)
        for what, times in measured(place, int(count)):
            print(f"{what:38}" + "".join(f"{each:8,.0f}" for each in times))


if __name__ == "__main__":
    main()
