"""Does a drain get slower by 50 pages that are open in one dashboard, and what do these ask the database?

    python bench/dashboard_pages.py [--rounds N] [--jobs N] [--pages N] [--save FILE]

In each round one worker process drains the same number of jobs twice, with the pages open in another process and
without, in turns: only the ratio of one round counts, because other work slows both. The pages are those of five
screens, each open ten times, and are made and sent as over HTTP. Printed are the ratios of the paces, their median, and
how many statements the process of the dashboard asked in a second and how many buffers the server read for them, with
one page of each screen open and with all. `--rounds 0` counts these alone, which no other work on the machine disturbs.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
from starlette.requests import Request

from fencerow import App
from fencerow.bench.evidence import keep
from fencerow.core.db.run import Statement
from fencerow.testing.postgres import PostgresServer
from fencerow.web.dashboard.asgi import Dashboard
from fencerow.web.dashboard.cost import Cost
from fencerow.web.dashboard.roles import Role, Visitor

SCREENS = ("/", "/jobs", "/queues", "/workers", "/health")
COUNTED_S = 20.0
SETTINGS = {"shared_buffers": "256MB"}


async def nothing(n: int) -> None: ...


def app_at(url: str) -> App:
    app = App(url)
    app.job(name="nothing", queue="drained")(nothing)
    return app


def drain(url: str, jobs: int, told: Connection) -> None:
    """A worker process: so many jobs, and how long they took."""

    async def run() -> float:
        async with app_at(url) as app:
            job = app.jobs["nothing"]
            for start in range(0, jobs, 1_000):
                await asyncio.gather(*(job.asubmit(n) for n in range(start, min(jobs, start + 1_000))))
            began = time.perf_counter()
            await app.worker(slots=20).run(until_idle=True)
            return time.perf_counter() - began

    told.send(asyncio.run(run()))


def show(url: str, pages: int, told: Connection) -> None:
    """A process with a dashboard and so many open pages; it tells how many statements it has asked."""
    asked = [0]
    plain = Cost._asked

    def counted(cost: Cost, statement: Statement) -> Statement:
        asked[0] += 1
        return plain(cost, statement)

    Cost._asked = counted  # type: ignore[method-assign,assignment]

    async def anybody(_request: Request) -> Visitor:
        return Visitor("mara", Role.READ)

    async def run() -> None:
        async with app_at(url) as app:
            board = Dashboard(app, authorize=anybody)
            opened = [asyncio.ensure_future(page(board, SCREENS[n % len(SCREENS)])) for n in range(pages)]
            loop = asyncio.get_running_loop()
            told.send("open")
            while await loop.run_in_executor(None, told.recv) == "asked":
                told.send(asked[0])
            board.leave()
            await asyncio.gather(*opened)
            await board.aclose()

    asyncio.run(run())


async def page(board: Dashboard, path: str) -> None:
    """One page, as a browser keeps it open."""

    async def send(_message: Any) -> None: ...

    async def receive() -> Any:
        await asyncio.Event().wait()

    scope = {
        "type": "http", "method": "GET", "path": "/live", "root_path": "", "scheme": "http", "http_version": "1.1",
        "query_string": f"at={path}".encode(), "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
    }  # fmt: skip
    await board(scope, receive, send)


class Shown:
    """A process that shows pages, while the block lasts."""

    def __init__(self, url: str, pages: int) -> None:
        self._told, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.Process(target=show, args=(url, pages, theirs))

    def __enter__(self) -> Shown:
        self._process.start()
        assert self._told.recv() == "open"
        return self

    def __exit__(self, *_: object) -> None:
        self._told.send("over")
        self._process.join()

    def asked(self) -> int:
        self._told.send("asked")
        number: int = self._told.recv()
        return number


def drained(url: str, jobs: int) -> float:
    """Jobs a second of one worker process."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=drain, args=(url, jobs, theirs))
    process.start()
    took_s: float = ours.recv()
    process.join()
    return jobs / took_s


def asked_a_second(url: str, pages: int) -> dict[str, float]:
    """What so many open pages ask the database: statements, and buffers of 8 KiB that the server reads."""
    with Shown(url, pages) as shown:
        time.sleep(COUNTED_S / 2)
        before, read, began = shown.asked(), buffers(url), time.monotonic()
        time.sleep(COUNTED_S)
        took_s = time.monotonic() - began
        return {
            "statements": (shown.asked() - before) / took_s,
            "buffers": (buffers(url) - read) / took_s,
        }


def buffers(url: str) -> int:
    """How many buffers the server has read in this database since its start, in memory or not."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
    assert row is not None
    return int(row[0])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--pages", type=int, default=50)
    parser.add_argument("--save", type=Path, help="Write what was found there, as JSON.")
    options = parser.parse_args()
    multiprocessing.set_start_method("spawn")
    found: list[dict[str, float]] = []
    with PostgresServer(settings=SETTINGS) as server:
        url = server.create_role_and_schema()
        with App(url) as app:
            app.migrate()
        few, many = (asked_a_second(url, pages) for pages in (len(SCREENS), options.pages))
        for pages, asked in ((len(SCREENS), few), (options.pages, many)):
            say(
                f"{pages} pages: {asked['statements']:.1f} statements and {asked['buffers']:.0f} buffers a second"
            )
        for number in range(options.rounds):
            paces: dict[str, float] = {}
            for each in ("with", "without") if number % 2 else ("without", "with"):
                if each == "without":
                    paces[each] = drained(url, options.jobs)
                else:
                    with Shown(url, options.pages):
                        paces[each] = drained(url, options.jobs)
            found.append(paces)
            say(f"{paces['with']:,.0f} jobs/s with, {paces['without']:,.0f} without: {ratio(paces):.3f}")
    told: dict[str, Any] = {"jobs": options.jobs, "pages": options.pages, "rounds": found}
    told["asked_a_second"] = {"one of each": few, "all": many}
    if found:
        told["median_ratio"] = median(map(ratio, found))
        say(f"median ratio {told['median_ratio']:.3f}")
    keep(options.save, told)
    return 0


def ratio(paces: dict[str, float]) -> float:
    return paces["with"] / paces["without"]


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
