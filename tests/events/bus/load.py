"""Runs a load: publishers, drainers that are killed, a plain reader beside them, and a stranger's long transaction."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg

from fencerow import Database
from fencerow.events import EventBus
from tests.events.bus.plan import GROUPS, Ground, Plan

LOOK_S = 0.1
DRAINED_S = 300.0


@dataclass
class Observed:
    """What was seen from outside."""

    plan: Plan
    aborted: int = 0
    killed: int = 0
    published_s: float = 0.0
    drained_s: float = 0.0
    plain: set[int] = field(default_factory=set)  # ids that a reader by `id > cursor` saw
    left: list[str] = field(default_factory=list)


def run(plan: Plan) -> Observed:
    """The whole load, on a migrated database."""
    seen = Observed(plan)
    make_tables(plan)
    stopped = threading.Event()
    plain = threading.Thread(target=read_plainly, args=(plan, seen, stopped))
    began = time.monotonic()
    with strangers(plan), drainers(plan) as team:
        plain.start()
        publishers = [start("publisher", plan, str(first), str(count)) for first, count in shares(plan)]
        kill_some(plan, seen, team, publishers)
        for each in publishers:
            out, _ = each.communicate(timeout=DRAINED_S)
            assert each.returncode == 0, "a publisher failed"
            seen.aborted += int(out)
        seen.published_s = time.monotonic() - began
        wait_drained(plan, seen)
        seen.drained_s = time.monotonic() - began
    time.sleep(LOOK_S * 2)
    stopped.set()
    plain.join()
    return seen


def shares(plan: Plan) -> Iterator[tuple[int, int]]:
    """Which publishers go into which process: ten at most in one."""
    for first in range(0, plan.publishers, 10):
        yield first, min(10, plan.publishers - first)


def start(role: str, plan: Plan, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", f"tests.events.bus.{role}", plan.told(), *arguments],
        stdout=subprocess.PIPE,
        text=True,
    )


@contextmanager
def drainers(plan: Plan) -> Iterator[list[subprocess.Popen[str]]]:
    team = [start("drainer", plan) for _ in range(plan.drainers)]
    try:
        yield team
    finally:
        for each in team:
            each.terminate()
        for each in team:
            try:
                each.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                each.kill()
                each.communicate()


def kill_some(
    plan: Plan, seen: Observed, team: list[subprocess.Popen[str]], publishers: list[subprocess.Popen[str]]
) -> None:
    """Kill drainers while there is work, and start others in their place."""
    drawn = random.Random(plan.seed)
    every = max(1, plan.events // (plan.kills + 1))
    for number in range(1, plan.kills + 1):
        deadline = time.monotonic() + DRAINED_S
        while delivered(plan) < number * every and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        victim = drawn.randrange(len(team))
        team[victim].kill()
        team[victim].communicate()
        seen.killed += 1
        team[victim] = start("drainer", plan)
    assert all(each.poll() is None or each.returncode == 0 for each in publishers)


def wait_drained(plan: Plan, seen: Observed) -> None:
    """Until both groups have read everything."""
    with Database(plan.url) as place:
        bus, deadline = EventBus(place), time.monotonic() + DRAINED_S
        while time.monotonic() < deadline:
            lags = {lag.group: lag for lag in bus.lag()}
            read = set(lags) == set(GROUPS) and not any(lag.events or lag.waiting for lag in lags.values())
            # Those that have no place yet are not among them.
            if read and delivered(plan) >= plan.events:
                return
            time.sleep(LOOK_S)
        seen.left = [f"{lag.group}: {lag.events} events, {lag.waiting} waiting" for lag in bus.lag()]


def delivered(plan: Plan) -> int:
    """Effects so far."""
    return int(query(plan, f"SELECT count(*) FROM {Ground(plan).table('effects')}")[0][0])


# --- the database --------------------------------------------------------------------------------


def query(plan: Plan, text: str) -> list[Any]:
    if plan.is_postgres:
        with psycopg.connect(plan.url, autocommit=True) as connection:
            return connection.execute(text).fetchall()
    lite = sqlite3.connect(plan.url.removeprefix("sqlite:///"), timeout=60, isolation_level=None)
    try:
        return lite.execute(text).fetchall()
    finally:
        lite.close()


def make_tables(plan: Plan) -> None:
    ground = Ground(plan)
    serial = "BIGSERIAL PRIMARY KEY" if plan.is_postgres else "INTEGER PRIMARY KEY AUTOINCREMENT"
    flag, real = ("boolean", "double precision") if plan.is_postgres else ("INTEGER", "REAL")
    texts = [
        f"CREATE TABLE {ground.table('keys')} (name TEXT PRIMARY KEY, version BIGINT NOT NULL)",
        (
            f"CREATE TABLE {ground.table('truth')} "
            f"(event_id BIGINT PRIMARY KEY, name TEXT, version BIGINT, number INTEGER, at {real})"
        ),
        (
            f"CREATE TABLE {ground.table('effects')} (id {serial}, event_id BIGINT, name TEXT, version BIGINT, "
            f"number INTEGER, aborted {flag}, at {real})"
        ),
        f"CREATE TABLE {ground.table('stranger')} (id BIGINT)",
        f"INSERT INTO {ground.table('keys')} VALUES "
        + ", ".join(f"('k{number}', 0)" for number in range(plan.keys)),
    ]
    if plan.is_postgres:
        with psycopg.connect(plan.url, autocommit=True) as connection:
            for text in texts:
                connection.execute(text)
        return
    for text in texts:
        query(plan, text)


@contextmanager
def strangers(plan: Plan) -> Iterator[None]:
    """Two who have nothing to do with events: a long writing transaction, and a report with an old snapshot."""
    if not plan.is_postgres:
        yield
        return
    with psycopg.connect(plan.url) as writer, psycopg.connect(plan.url) as report:
        writer.execute(f"INSERT INTO {Ground(plan).table('stranger')} VALUES (1)")
        report.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        report.execute("SELECT count(*) FROM fencerow.events")
        yield
        writer.rollback()
        report.rollback()


def read_plainly(plan: Plan, seen: Observed, stopped: threading.Event) -> None:
    """The negative control, under the same load: a reader who goes by `id > cursor`."""
    table, cursor = "fencerow.events" if plan.is_postgres else "fencerow_events", 0
    while True:
        last = stopped.is_set()
        while found := query(plan, f"SELECT id FROM {table} WHERE id > {cursor} ORDER BY id LIMIT 500"):
            seen.plain.update(int(row[0]) for row in found)
            cursor = int(found[-1][0])
        if last:
            return
        time.sleep(0.005)
