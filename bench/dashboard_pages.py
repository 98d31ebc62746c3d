"""Does a drain get slower by 50 pages that are open in one dashboard, and who takes the processor meanwhile?

    python bench/dashboard_pages.py [--rounds N] [--jobs N] [--pages N ...] [--uncounted] [--save FILE]

In each round one worker process drains the same number of jobs without open pages and with each of these numbers of
them, in turns: only the ratio of one round counts, because other work slows both. The pages are those of five screens.
One process serves them over HTTP, and a thread here reads what comes and throws it away, since browsers are on other
machines.

Printed are the ratios of the paces, their medians, and how many seconds of processor went in a second of drain to the
server of the pages, to their readers, to PostgreSQL, and to the worker. Drains are long, since open pages are looked at
every 2 to 10 seconds. Before them are counted the statements that the server of the pages asks in a second and the
buffers that PostgreSQL reads for them, with one page of each screen open and with all. `--rounds 0` counts these alone,
which no other work on the machine disturbs; `--uncounted` leaves that out.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import selectors
import socket
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
from starlette.requests import Request

from fencerow import App
from fencerow.bench.evidence import keep
from fencerow.db.run import Statement
from fencerow.supervisor.probes import ProbeAddress, listening
from fencerow.testing.postgres import PostgresServer
from fencerow.web.dashboard.asgi import Dashboard
from fencerow.web.dashboard.cost import Cost
from fencerow.web.dashboard.roles import Role, Visitor
from fencerow.web.gateway.server import Server
from fencerow.web.settings import WebSettings

SCREENS = ("/", "/jobs", "/queues", "/workers", "/health")
COUNTED_S = 20.0
SETTINGS = {"shared_buffers": "256MB"}
TICKS_S = 100  # of /proc, on every Linux
PART_BYTES = 2_000  # less than the live part of any screen


async def nothing(n: int) -> None: ...


def app_at(url: str) -> App:
    app = App(url)
    app.job(name="nothing", queue="drained")(nothing)
    return app


# --- processes ------------------------------------------------------------------------------------------------


def drain(url: str, jobs: int, told: Connection) -> None:
    """A worker process: so many jobs, as soon as it is told to; then how long they took, and how much processor."""

    async def run() -> tuple[float, float]:
        async with app_at(url) as app:
            job = app.jobs["nothing"]
            for start in range(0, jobs, 1_000):
                await app.asubmit_many(job.call(n) for n in range(start, min(jobs, start + 1_000)))
            told.send("submitted")
            told.recv()
            began, spent = time.perf_counter(), time.process_time()
            await app.worker(slots=20).run(until_idle=True)
            return time.perf_counter() - began, time.process_time() - spent

    told.send(asyncio.run(run()))


def show(url: str, told: Connection) -> None:
    """A process with a dashboard; it tells its port, then its statements and its seconds of processor until now."""
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
            server = Server(Dashboard(app, authorize=anybody), WebSettings.of(app.config))
            bound = listening(ProbeAddress("127.0.0.1", 0))
            serving = asyncio.ensure_future(server.run([bound]))
            loop = asyncio.get_running_loop()
            told.send(bound.getsockname()[1])
            while await loop.run_in_executor(None, told.recv) == "spent":
                told.send((asked[0], time.process_time()))
            server.leave()
            server.leave()
            await serving

    asyncio.run(run())


class Readers:
    """So many open pages: sockets, read by one thread that throws away what comes."""

    def __init__(self, port: int, pages: int) -> None:
        self._came = {self._opened(port, SCREENS[n % len(SCREENS)]): 0 for n in range(pages)}
        self._over = False
        self._all_came = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()
        assert self._all_came.wait(60), "some page was not sent"

    def _opened(self, port: int, path: str) -> socket.socket:
        opened = socket.create_connection(("127.0.0.1", port))
        opened.sendall(f"GET /live?at={path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        opened.setblocking(False)
        return opened

    def _read(self) -> None:
        ready = selectors.DefaultSelector()
        for each in self._came:
            ready.register(each, selectors.EVENT_READ)
        while not self._over:
            for key, _ in ready.select(0.1):
                found = key.fileobj
                assert isinstance(found, socket.socket)
                self._came[found] += len(found.recv(1 << 18))
            if min(self._came.values(), default=PART_BYTES) >= PART_BYTES:
                self._all_came.set()

    def spent_s(self) -> float:
        """Seconds of processor until now."""
        assert self._thread.ident is not None
        return time.clock_gettime(time.pthread_getcpuclockid(self._thread.ident))

    def bytes_came(self) -> int:
        """Of all pages together."""
        return sum(self._came.values())

    def close(self) -> None:
        """Close all pages."""
        self._over = True
        self._thread.join()
        for each in self._came:
            each.close()


class Shown:
    """A process that shows pages while the block lasts; at its start each of them has come once."""

    def __init__(self, url: str, pages: int) -> None:
        self._told, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.Process(target=show, args=(url, theirs))
        self._pages = pages

    def __enter__(self) -> Shown:
        self._process.start()
        self.readers = Readers(self._told.recv(), self._pages)
        return self

    def __exit__(self, *_: object) -> None:
        self._told.send("over")
        self._process.join()
        self.readers.close()

    def spent(self) -> tuple[int, float]:
        """Statements asked, and seconds of processor."""
        self._told.send("spent")
        found: tuple[int, float] = self._told.recv()
        return found


# --- measures -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Drained:
    """Jobs a second of one worker process, and of whom the processor was: seconds in a second of the drain."""

    pace: float
    pages_s: float
    readers_s: float
    postgres_s: float
    worker_s: float
    bytes_a_second: float


def drained(server: PostgresServer, url: str, jobs: int, pages: int) -> Drained:
    """One drain, with so many open pages. The jobs are there before."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=drain, args=(url, jobs, theirs))
    process.start()
    assert ours.recv() == "submitted"
    try:
        if not pages:
            return _drained(server, ours, jobs, None)
        with Shown(url, pages) as shown:
            return _drained(server, ours, jobs, shown)
    finally:
        process.join()


def _drained(server: PostgresServer, worker: Connection, jobs: int, shown: Shown | None) -> Drained:
    def spent() -> list[float]:
        ours = (
            [0.0, 0.0, 0.0]
            if shown is None
            else [shown.spent()[1], shown.readers.spent_s(), shown.readers.bytes_came()]
        )
        return [*ours, processor_s(server)]

    before = spent()
    worker.send("go")
    took_s, worker_s = worker.recv()
    pages_s, readers_s, came, postgres_s = (
        (after - each) / took_s for after, each in zip(spent(), before, strict=True)
    )
    return Drained(jobs / took_s, pages_s, readers_s, postgres_s, worker_s / took_s, came)


def processor_s(server: PostgresServer) -> float:
    """Seconds of processor of a PostgreSQL server: of its processes, and of those that have ended."""
    main = server.pid
    assert main is not None
    children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
    return sum(map(_spent, children)) + _spent(str(main), ended=True)


def _spent(pid: str, *, ended: bool = False) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0  # it has ended just now
    return sum(map(int, fields[11 : 15 if ended else 13])) / TICKS_S


def asked_a_second(url: str, pages: int) -> dict[str, float]:
    """What so many open pages ask the database: statements, and buffers of 8 KiB that the server reads."""
    with Shown(url, pages) as shown:
        time.sleep(COUNTED_S / 2)
        (before, _), read, began = shown.spent(), buffers(url), time.monotonic()
        time.sleep(COUNTED_S)
        took_s = time.monotonic() - began
        return {
            "statements": (shown.spent()[0] - before) / took_s,
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
    parser.add_argument("--jobs", type=int, default=30_000)
    parser.add_argument("--pages", type=int, nargs="+", default=[50])
    parser.add_argument("--uncounted", action="store_true", help="Do not count statements and buffers.")
    parser.add_argument("--save", type=Path, help="Write what was found there, as JSON.")
    options = parser.parse_args()
    multiprocessing.set_start_method("spawn")
    told: dict[str, Any] = {"jobs": options.jobs, "pages": options.pages}
    with PostgresServer(settings=SETTINGS) as server:
        url = server.create_role_and_schema()
        with App(url) as app:
            app.migrate()
        if not options.uncounted:
            told["asked_a_second"] = {
                pages: asked_a_second(url, pages) for pages in (len(SCREENS), max(options.pages))
            }
            for pages, asked in told["asked_a_second"].items():
                say(
                    f"{pages} pages: {asked['statements']:.1f} statements and {asked['buffers']:.0f} buffers a second"
                )
        rounds = [
            round_of(server, url, options.jobs, in_turns([0, *options.pages], number))
            for number in range(options.rounds)
        ]
    if rounds:
        told |= summed(rounds)
    keep(options.save, told)
    return 0


def in_turns(numbers: Sequence[int], first: int) -> list[int]:
    """Each of them, beginning elsewhere each time."""
    return [numbers[(place + first) % len(numbers)] for place in range(len(numbers))]


def round_of(server: PostgresServer, url: str, jobs: int, numbers: Sequence[int]) -> dict[int, Drained]:
    """A drain with each number of open pages."""
    found = {pages: drained(server, url, jobs, pages) for pages in numbers}
    for pages, each in sorted(found.items()):
        say(f"{pages:3} pages: {each.pace:6,.0f} jobs/s, {each.pace / found[0].pace:.3f}; {processors(each)}")
    return found


def processors(found: Drained) -> str:
    return (
        f"processor: pages {found.pages_s:.3f}, readers {found.readers_s:.3f}, PostgreSQL {found.postgres_s:.3f}, "
        f"worker {found.worker_s:.3f}; {found.bytes_a_second / 1000:,.0f} kB/s"
    )


def summed(rounds: Sequence[dict[int, Drained]]) -> dict[str, Any]:
    """The ratios of each round, their medians, and the medians of the processor's seconds."""
    ratios = {
        pages: [each[pages].pace / each[0].pace for each in rounds] for pages in sorted(rounds[0]) if pages
    }
    spent = {
        pages: {
            name: median(getattr(each[pages], name) for each in rounds) for name in Drained.__slots__
        }
        for pages in sorted(rounds[0])
    }  # fmt: skip
    for pages, found in ratios.items():
        say(f"{pages} pages: median ratio {median(found):.3f} ({min(found):.3f} to {max(found):.3f})")
    return {
        "ratios": ratios,
        "median_ratio": {pages: median(found) for pages, found in ratios.items()},
        "medians": spent,
    }


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
