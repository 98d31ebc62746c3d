"""What does a gateway pay for readers of events?

    python bench/streams.py [--streams NUMBER] [postgres] [sqlite] [--save FILE]

A gateway in a process of its own, and as many readers over TCP, each of another job: its memory, the share of a
processor that it uses while nothing happens and while a hundred jobs a second say how far they are, and how old that is
when a reader hears of it. Nothing else should run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import multiprocessing.synchronize
import os
import resource
import statistics
import time
from pathlib import Path

from starlette.requests import Request

from fencerow import App, Config
from fencerow.bench.evidence import keep
from fencerow.bench.place import private_place
from fencerow.core.model.ids import new_id
from fencerow.core.store import store
from fencerow.core.store.claims import Mark
from fencerow.supervisor.probes import ProbeAddress, listening
from fencerow.web.gateway.asgi import Gateway
from fencerow.web.gateway.server import Server
from fencerow.web.settings import WebSettings
from fencerow.web.tokens.scope import Grant, Scope

STREAMS = 1_000
SECONDS = 20.0
SPOKEN_PER_S = 100
COMING_MAX = (
    20  # readers who ask for their stream at once; all at once would wait for the pool of the database
)
ANYBODY = Grant(id="bench", name="bench", scopes=frozenset(Scope), queues=None)


def serve(url: str, port: int, ready: multiprocessing.synchronize.Event) -> None:
    async def authorize(_request: Request) -> Grant:
        return ANYBODY

    async def served() -> None:
        # All readers are one caller.
        app = App(config=Config(url=url, web_streams_caller_max=10_000, web_rate_per_second=0.0))
        sockets = [listening(ProbeAddress("127.0.0.1", port))]
        ready.set()
        await Server(Gateway(app, authorize=authorize), WebSettings.of(app.config)).run(sockets)

    asyncio.run(served())


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


class Readers:
    """All of them, in this process."""

    def __init__(self, count: int) -> None:
        self.ages_ms: list[float] = []
        self.all_told = asyncio.Event()
        self._missing = count
        self._coming = asyncio.Semaphore(COMING_MAX)

    async def read(self, port: int, job_id: str) -> None:
        async with self._coming:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"GET /v1/jobs/{job_id}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            assert b" 200 " in (status := await reader.readline()), status
        while line := await reader.readline():
            if line.startswith(b"event: state"):
                self._missing -= 1
                if not self._missing:
                    self.all_told.set()
            if line.startswith(b'data: {"attempt"'):
                said = float(json.loads(line[6:])["note"])
                self.ages_ms.append((time.time() - said) * 1e3)


def claimed(app: App, count: int) -> tuple[str, list[str]]:
    """So many running jobs, and who holds them."""

    @app.job(name="noop")
    async def noop() -> None: ...

    app.submit_many(noop.call() for _ in range(count))
    holder, engine = new_id(), app.engine
    engine.run(store.register(holder=holder, name="w", host="h", pid=1, info="{}", lease_s=3600.0))
    ids: list[str] = []
    while len(ids) < count:
        claim = store.claim(
            "default", [Mark(0)], holder=holder, names=["noop"], limit=count - len(ids), margin_s=60
        )
        ids += [each.id for each in engine.run(claim)]
    return holder, ids


async def spoken(app: App, holder: str, ids: list[str]) -> None:
    began, said = time.monotonic(), 0
    while (elapsed := time.monotonic() - began) < SECONDS:
        while said < elapsed * SPOKEN_PER_S:
            word = store.progress(
                ids[said % len(ids)], holder=holder, attempt=1, percent=said % 100, note=str(time.time())
            )
            await app.engine.arun(word)
            said += 1
        await asyncio.sleep(0.01)


async def measured(url: str, port: int, pid: int, count: int) -> dict[str, float]:
    found: dict[str, float] = {}

    def told(what: str, value: float, unit: str) -> None:
        found[f"{what}, {unit}"] = round(value, 1)
        print(f"{what:60} {value:8.1f} {unit}", flush=True)

    app = App(config=Config(url=url))
    holder, ids = await asyncio.to_thread(claimed, app, count)
    readers = Readers(count)
    before = resident_mib(pid)
    tasks = [asyncio.create_task(readers.read(port, job_id)) for job_id in ids]
    await readers.all_told.wait()
    told("memory at rest", before, "MiB")
    told(f"memory of {count} streams", resident_mib(pid) - before, "MiB")
    for what, work in (("nothing happens", asyncio.sleep(SECONDS)), ("100/s", spoken(app, holder, ids))):
        began, at = processor_s(pid), time.monotonic()
        await work
        told(
            f"of one processor while {what}",
            100 * (processor_s(pid) - began) / (time.monotonic() - at),
            "percent",
        )
    told("age of progress when it is read, median", statistics.median(readers.ages_ms), "ms")
    for task in tasks:
        task.cancel()
    await app.aclose()
    return found


def main(count: int, dialects: list[str], save: Path | None) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 2 * count + 500), hard))
    making = multiprocessing.get_context("spawn")
    found = {}
    for at, dialect in enumerate(dialects or ("postgres", "sqlite")):
        with private_place(dialect) as place:
            port, ready = 18_080 + at, making.Event()
            child = making.Process(target=serve, args=(place.config.url, port, ready))
            child.start()
            ready.wait()
            print(dialect)
            assert child.pid is not None
            found[dialect] = asyncio.run(measured(place.config.url or "", port, child.pid, count))
            child.terminate()
            child.join()
    keep(save, found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dialects", nargs="*", metavar="postgres|sqlite")
    parser.add_argument("--streams", type=int, default=STREAMS)
    parser.add_argument("--save", type=Path)
    given = parser.parse_args()
    main(given.streams, given.dialects, given.save)
