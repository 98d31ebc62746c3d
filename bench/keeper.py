"""Does a lease outlive code that keeps the interpreter lock when a thread renews it, when a process does? The price?

    python bench/keeper.py [lease_s]

A worker process runs the load while its lease is renewed; this process watches the worker's row from outside.
`pure Python` gives the lock away every 5 ms; a regular expression and `json.loads` keep it to their end.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psycopg

from fencerow.core.background.loop import Endurance
from fencerow.core.store import store
from fencerow.core.telemetry import Telemetry
from fencerow.core.worker.keeper import Keeper
from fencerow.core.worker.lease import Failover, WorkerLease
from fencerow.db.clock import CarriedClock
from fencerow.db.postgres import PostgresEngine
from fencerow.testing.postgres import PostgresServer

LEASE_S = 3.0
WATCH_S = 0.01

# The smallest keeper process there could be: a driver, one statement, and a look at its parent.
PROCESS = """
import os, sys, time, psycopg
url, holder, pause_s, parent = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
connection = psycopg.connect(url, autocommit=True)
while os.getppid() == parent:
    connection.execute(
        "UPDATE fencerow.workers SET renewed_at = fencerow.now(),"
        " lease_until = fencerow.now() + fencerow.seconds(lease_s) WHERE id = %s AND state = 'alive'", (holder,))
    time.sleep(pause_s)
"""


@dataclass(frozen=True)
class Seen:
    """What the watcher saw of one run."""

    renewals: int
    longest_gap_s: float
    without_lease_s: float


class Nobody:
    """A worker that states nothing and takes no notice."""

    def stated(self) -> str:
        return "{}"

    def on_renewed(self, holder: str, version: int, wanted: object) -> None: ...

    def on_holdings(self, holder: str, holdings: object) -> None: ...

    def on_death(self, holder: str) -> None: ...

    def on_keeper_failed(self, error: BaseException) -> None:
        raise error


def main() -> None:
    lease_s = float(sys.argv[1]) if len(sys.argv) > 1 else LEASE_S
    print(
        f"{platform.machine()}, Python {platform.python_version()}, lease {lease_s:g} s, renewed every sixth of it"
    )
    heads = (
        f"{'keeper':8} {'load':12} {'lasted':>7} {'renewals':>9} {'longest gap':>12} {'without a lease':>16}"
    )
    print(f"{heads} {'PSS':>18}")
    with PostgresServer(fast=True) as server:
        url = server.create_role_and_schema()
        engine = PostgresEngine(url, store.postgres_queries())
        store.migrate(engine)
        engine.close()
        for load in LOADS:
            for kind in ("thread", "process"):
                measure(url, kind, load, lease_s)


def measure(url: str, kind: str, load: str, lease_s: float) -> None:
    command = [sys.executable, __file__, "worker", url, kind, load, str(lease_s)]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert worker.stdin is not None
    assert worker.stdout is not None
    holder, own_mib, keeper_mib = worker.stdout.readline().split()
    with psycopg.connect(url, autocommit=True) as connection:
        worker.stdin.write("go\n")
        worker.stdin.flush()
        began = time.monotonic()
        seen = watch(connection, holder, worker)
        lasted_s = time.monotonic() - began
    price = f"{own_mib} + {keeper_mib} MiB"
    print(
        f"{kind:8} {load:12} {lasted_s:6.1f}s {seen.renewals:9} {seen.longest_gap_s:11.1f}s"
        f" {seen.without_lease_s:15.1f}s {price:>18}",
        flush=True,
    )


def watch(
    connection: psycopg.Connection[tuple[object, ...]], holder: str, worker: subprocess.Popen[str]
) -> Seen:
    """Look at the row until the load has ended."""
    query = (
        "SELECT fencerow.us(renewed_at), fencerow.us(fencerow.now()), lease_until < fencerow.now() "
        "FROM fencerow.workers WHERE id = %s"
    )
    renewals, last, gap_us, without_s = 0, 0, 0, 0.0
    while worker.poll() is None:
        row = connection.execute(query, (holder,)).fetchone()
        assert row is not None
        renewed_us, now_us = int(str(row[0])), int(str(row[1]))
        renewals += int(renewed_us != last and last != 0)
        last, gap_us = renewed_us, max(gap_us, now_us - renewed_us)
        without_s += WATCH_S if row[2] else 0.0
        time.sleep(WATCH_S)
    return Seen(renewals, gap_us / 1e6, without_s)


# --- the worker process ----------------------------------------------------------------------------------------


def work(url: str, kind: str, load: str, lease_s: float) -> None:
    engine = PostgresEngine(url, store.postgres_queries())
    lease = WorkerLease(lease_s, lease_s / 6)
    keeper = Keeper(
        engine,
        lease,
        Failover(engine),
        Endurance("keeper", lease_s),
        Nobody(),
        CarriedClock(),
        name="bench",
        info={},
        renew_s=lease_s / 6 if kind == "thread" else 3600.0,
        telemetry=Telemetry(),
    )
    keeper.start()
    keeps_s = LOADS[load](lease_s)
    helper = None
    if kind == "process":
        arguments = [url, str(lease.holder), str(lease_s / 6), str(os.getpid())]
        helper = subprocess.Popen([sys.executable, "-c", PROCESS, *arguments])
        time.sleep(1.0)
    print(
        lease.holder,
        round(pss_mib("self")),
        0 if helper is None else round(pss_mib(str(helper.pid))),
        flush=True,
    )
    sys.stdin.readline()
    keeps_s()
    if helper is not None:
        helper.kill()
        helper.wait()


def pure_python(lease_s: float) -> Callable[[], object]:
    def run() -> None:
        until = time.monotonic() + 3 * lease_s
        while time.monotonic() < until:
            sum(range(1000))

    return run


def backtracking(lease_s: float) -> Callable[[], object]:
    """One match that takes about three leases: each character more takes 1.6 times as long."""
    length, took_s = 20, 0.0
    while took_s < 0.1:
        length += 1
        began = time.monotonic()
        re.fullmatch("(a|aa)+b", "a" * length)
        took_s = time.monotonic() - began
    while took_s < 3 * lease_s:
        length, took_s = length + 1, took_s * 1.6
    return lambda: re.fullmatch("(a|aa)+b", "a" * length)


def one_json(lease_s: float) -> Callable[[], object]:
    """One document, parsed in about a lease; larger ones do not fit everywhere."""
    part = json.dumps([{"number": number, "text": "x" * 20} for number in range(20_000)])
    began = time.monotonic()
    json.loads(part)
    times = int(lease_s * 1.2 / (time.monotonic() - began))
    document = "[" + ",".join([part] * min(times, 250)) + "]"
    return lambda: len(json.loads(document))


LOADS: dict[str, Callable[[float], Callable[[], object]]] = {
    "pure Python": pure_python,
    "regex": backtracking,
    "json.loads": one_json,
}


def pss_mib(pid: str) -> float:
    """Memory of a process, what it shares counted in parts."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii")
    (line,) = [line for line in rollup.splitlines() if line.startswith("Pss:")]
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        work(sys.argv[2], sys.argv[3], sys.argv[4], float(sys.argv[5]))
    else:
        main()
