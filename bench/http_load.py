"""How fast does the gateway take jobs, beside others that do the same?

    python bench/http_load.py [rounds] [--arq PYTHON] [--celery PYTHON] [--save FILE]

Each takes a POST with a job as JSON and answers when it is kept: the gateway, a bare Starlette endpoint with one INSERT
in one transaction (PostgreSQL and SQLite, as durable as ours), and FastAPI with arq or with Celery, in a Redis of its
own that writes each change down before it answers. PYTHON is that of an environment with fastapi, uvicorn and one of
the two, for they want different releases of the client of Redis. One process of uvicorn each. Callers are in a process
of their own, and the places take turns, so that a machine that slows down slows all: only ratios of one run count.

On a loaded machine a place with more processes gets more of it. So what each submit cost the processors is told too: of
the serving process, and of PostgreSQL where it is used.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from fencerow import App
from fencerow.bench.evidence import circumstances
from fencerow.bench.place import BenchDatabase, private_place
from fencerow.bench.server import cpu_s
from fencerow.testing.ports import free_port

CALLERS = 16
ROUND_S = 4.0
STARTED_S = 120.0
BODY = json.dumps({"job": "pages", "args": {"path": "a.pdf", "copies": 2}}).encode()
GATEWAY = """
from fencerow import App

app = App()


@app.job(name="pages", queue="documents")
async def pages(path: str, copies: int = 1) -> None: ...
"""
BARE_POSTGRES = """
import os
import psycopg_pool
from contextlib import asynccontextmanager
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

pool = psycopg_pool.AsyncConnectionPool(os.environ["BENCH_URL"], min_size=10, max_size=10, open=False)


@asynccontextmanager
async def lifespan(_):
    async with pool:
        async with pool.connection() as connection:
            await connection.execute(
                "CREATE TABLE IF NOT EXISTS fencerow.bare (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "
                "job text NOT NULL, args jsonb NOT NULL)")
        yield


async def submit(request):
    import json
    wanted = await request.json()
    async with pool.connection() as connection:
        done = await connection.execute(
            "INSERT INTO fencerow.bare (job, args) VALUES (%s, %s) RETURNING id",
            (wanted["job"], json.dumps(wanted["args"])))
        row = await done.fetchone()
    return JSONResponse({"id": row[0]}, 202)


app = Starlette(routes=[Route("/v1/jobs", submit, methods=["POST"])], lifespan=lifespan)
"""
BARE_SQLITE = """
import json
import os
import sqlite3
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.concurrency import run_in_threadpool
import threading

file = sqlite3.connect(os.environ["BENCH_URL"], isolation_level=None, check_same_thread=False)
file.execute("PRAGMA journal_mode = TRUNCATE")
file.execute("PRAGMA synchronous = FULL")
file.execute("CREATE TABLE IF NOT EXISTS bare (id INTEGER PRIMARY KEY, job TEXT NOT NULL, args TEXT NOT NULL)")
lock = threading.Lock()


def insert(wanted):
    with lock:
        return file.execute(
            "INSERT INTO bare (job, args) VALUES (?, ?)", (wanted["job"], json.dumps(wanted["args"]))).lastrowid


async def submit(request):
    return JSONResponse({"id": await run_in_threadpool(insert, await request.json())}, 202)


app = Starlette(routes=[Route("/v1/jobs", submit, methods=["POST"])])
"""
MODEL = """
import os
from fastapi import FastAPI
from pydantic import BaseModel


class Submit(BaseModel):
    job: str
    args: dict[str, object]


app = FastAPI()
"""
ARQ = (
    MODEL
    + """
from arq import create_pool
from arq.connections import RedisSettings

redis = None


@app.post("/v1/jobs", status_code=202)
async def submit(wanted: Submit):
    global redis
    if redis is None:
        redis = await create_pool(RedisSettings(port=int(os.environ["BENCH_REDIS"])))
    return {"id": (await redis.enqueue_job(wanted.job, **wanted.args)).job_id}
"""
)


# Celery's client blocks, so the endpoint is one of FastAPI's threads, as its users write it.
CELERY = (
    MODEL
    + """
from celery import Celery

tasks = Celery(broker="redis://127.0.0.1:" + os.environ["BENCH_REDIS"])


@app.post("/v1/jobs", status_code=202)
def submit(wanted: Submit):
    return {"id": tasks.send_task(wanted.job, kwargs=wanted.args, ignore_result=True).id}
"""
)

PEERS = {"arq": ARQ, "Celery": CELERY}


@dataclass
class Served:
    """A server that takes jobs. `database`: the process of its PostgreSQL."""

    port: int
    pid: int
    token: str = ""
    database: int | None = None

    def cost_s(self) -> float:
        """What it and its database have used of the processors so far."""
        return (cpu_s(self.pid) or 0.0) + (cpu_s(self.database) or 0.0)


@contextmanager
def running(command: list[str], folder: Path, **env: str) -> Iterator[int]:
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, cwd=folder, env={**os.environ, **env}, stdout=log, stderr=log)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


@contextmanager
def served(folder: Path, name: str, program: str, python: str, **env: str) -> Iterator[Served]:
    """A program by uvicorn."""
    (folder / f"{name}.py").write_text(program)
    port = free_port()
    command = [
        python,
        "-m",
        "uvicorn",
        f"{name}:app",
        "--port",
        str(port),
        "--http",
        "h11",
        "--loop",
        "asyncio",
    ]
    with running([*command, "--no-access-log"], folder, **env) as pid:
        yield Served(port, pid)


@contextmanager
def gateway(folder: Path, place: BenchDatabase) -> Iterator[Served]:
    name, port = f"gateway_{place.kind}", free_port()
    (folder / f"{name}.py").write_text(GATEWAY)
    with App(config=place.config) as app:
        token = app.client.tokens.create("bench", scopes=["submit"]).token
    env = {"FENCEROW_URL": place.config.url or "", "FENCEROW_APP": f"{name}:app"}
    own = [each for each in [os.environ.get("PYTHONPATH")] if each]
    bounds = {"FENCEROW_WEB_RATE_PER_SECOND": "0", "PYTHONPATH": os.pathsep.join([str(folder), *own])}
    command = [str(Path(sys.executable).parent / "fencerow"), "serve", "--bind", str(port)]
    with running(command, folder, **env, **bounds) as pid:
        yield Served(port, pid, token)


@dataclass
class Round:
    """What came of one round: the time of each answer, and what a submit cost the processors."""

    took_ms: list[float]
    cost_s: float


async def called(port: int, token: str, seconds: float) -> list[float]:
    """CALLERS send one after the other; the time of each answer in milliseconds."""
    head = f"POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n"
    request, took, until = head.encode() + BODY, [], time.monotonic() + seconds

    async def caller() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.monotonic() < until:
            began = time.perf_counter()
            writer.write(request)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 202"), answer
            length = int(answer.lower().partition(b"content-length: ")[2].split(b"\r", 1)[0])
            await reader.readexactly(length)
            took.append((time.perf_counter() - began) * 1e3)
        writer.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(CALLERS):
            group.create_task(caller())
    return took


async def answering(port: int) -> None:
    """Wait until somebody listens there.

    Raises:
        TimeoutError: nobody does; the log of the programs says why.
    """
    until = time.monotonic() + STARTED_S
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            if time.monotonic() > until:
                raise TimeoutError(port) from None
            await asyncio.sleep(0.1)
            continue
        writer.close()
        return


def redis(folder: Path, stack: ExitStack) -> str:
    port = str(free_port())
    command = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", str(folder)]
    stack.enter_context(running([*command, "--appendonly", "yes", "--appendfsync", "always"], folder))
    return port


def main(rounds: int, peers: dict[str, str], save: Path | None) -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        places: dict[str, Served] = {}
        for kind, bare in (("postgres", BARE_POSTGRES), ("sqlite", BARE_SQLITE)):
            place = stack.enter_context(private_place(kind))
            url = place.config.url if kind == "postgres" else str(folder / "bare.db")
            places[f"gateway, {kind}"] = stack.enter_context(gateway(folder, place))
            places[f"bare, {kind}"] = stack.enter_context(
                served(folder, f"bare_{kind}", bare, sys.executable, BENCH_URL=url or "")
            )
            for each in ("gateway", "bare"):
                places[f"{each}, {kind}"].database = place.server_pid
        if peers:
            port = redis(folder, stack)
            asyncio.run(answering(int(port)))
            for name, python in peers.items():
                places[f"FastAPI, {name}"] = stack.enter_context(
                    served(folder, f"fast_{name}", PEERS[name], python, BENCH_REDIS=port))  # fmt: skip
        try:
            told(measured(places, rounds), rounds, save)
        except* (AssertionError, TimeoutError):
            print((folder / "log").read_text("utf-8")[-4000:], file=sys.stderr)
            raise


def measured(places: dict[str, Served], rounds: int) -> dict[str, list[Round]]:
    """For each place, what came of each round. The first round only warms up."""
    found: dict[str, list[Round]] = {name: [] for name in places}
    for number in range(rounds + 1):
        for name, place in places.items():
            asyncio.run(answering(place.port))
            before_s = place.cost_s()
            took = asyncio.run(called(place.port, place.token, ROUND_S if number else 1.0))
            if number:
                found[name].append(Round(took, (place.cost_s() - before_s) / len(took)))
    return found


def told(found: dict[str, list[Round]], rounds: int, save: Path | None) -> None:
    figures = {}
    for name, played in found.items():
        rates = [len(each.took_ms) / ROUND_S for each in played]
        p99 = median(sorted(each.took_ms)[int(len(each.took_ms) * 0.99)] for each in played)
        figures[name] = {
            "per_s": round(median(rates), 1),
            "p99_ms": round(p99, 1),
            "processors_ms": round(median(each.cost_s for each in played) * 1e3, 2),
            "rounds": rates,
        }
    for kind in ("postgres", "sqlite"):
        ours, bare = found[f"gateway, {kind}"], found[f"bare, {kind}"]
        figures[f"gateway of bare, {kind}"] = ratio(ours, bare)
        costs = [one.cost_s / other.cost_s for one, other in zip(ours, bare, strict=True)]
        figures[f"processors, gateway of bare, {kind}"] = {"median": round(median(costs), 2), "rounds": costs}
    for name in (each for each in found if each.startswith("FastAPI")):
        figures[f"gateway on postgres of {name}"] = ratio(found["gateway, postgres"], found[name])
    document = {**circumstances(), "rounds": rounds, "load": os.getloadavg(), "figures": figures}
    print(json.dumps(document, indent=1))
    if save:
        save.write_text(json.dumps(document, indent=1) + "\n")


def ratio(ours: list[Round], theirs: list[Round]) -> dict[str, object]:
    """Submits of one beside those of the other."""
    ratios = [len(one.took_ms) / len(other.took_ms) for one, other in zip(ours, theirs, strict=True)]
    return {"median": round(median(ratios), 2), "rounds": ratios}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rounds", type=int, nargs="?", default=5)
    for each in PEERS:
        parser.add_argument(f"--{each.lower()}", dest=each, metavar="PYTHON")
    parser.add_argument("--save", type=Path)
    given = parser.parse_args()
    main(given.rounds, {name: vars(given)[name] for name in PEERS if vars(given)[name]}, given.save)
