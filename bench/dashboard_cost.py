"""What does each page of the dashboard cost a database with a million live jobs and five million finished ones?

    python bench/dashboard_cost.py [--live N] [--finished N] [--only SCREEN ...] [--no-plans] [--save FILE]
    python bench/dashboard_cost.py --stay FILE        (fills a server, writes its URL into FILE, and stays)
    python bench/dashboard_cost.py --on URL ...       (looks at one that is there)

It fills a PostgreSQL server of its own (about 5 GB at the default size), then asks every screen for its view, several
times, and each statement of a view for its plan. Printed for each view: statements and rows, which are bounded; the
median and the least time, which are this machine's; and what is not: how many buffers its statements read together, and
whether one of them walks through all jobs. It ends with 1 if a view breaks its ceiling of statements, rows, buffers or
milliseconds, or if a plan has a sequential scan over a table that is large here.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

from fencerow import App
from fencerow.bench.evidence import keep
from fencerow.core.errors import FencerowError
from fencerow.db.queries import pyformat
from fencerow.db.run import Statement
from fencerow.testing.postgres import PostgresServer
from fencerow.web.dashboard.cost import ROWS_MAX, Cost
from fencerow.web.dashboard.problems import Problems
from fencerow.web.dashboard.redacting import Redactor
from fencerow.web.dashboard.screen import Look, Screen
from fencerow.web.dashboard.screens import all_screens

LIVE, FINISHED = 1_000_000, 5_000_000
TIMES = 5
MS_MAX = 100
BUFFERS_MAX = 60_000  # 8 KiB each: where they are in memory, that many are read in some 50 ms
LARGE = 50_000  # rows: a sequential scan over less is no fault
SETTINGS = {
    "fsync": "off", "wal_level": "minimal", "max_wal_senders": "0", "max_wal_size": "4GB",
    "shared_buffers": "512MB", "maintenance_work_mem": "256MB",
}  # fmt: skip
NOW = "TIMESTAMPTZ '2026-11-29 12:00:00+00'"
NOW_MS = 1_795_953_600_000  # the same instant
FIRST_MS = NOW_MS - 5_000_000  # finished jobs were submitted within 83 minutes of it, live ones within 17
LIVE_OFFSET = 4_000_000


def id_of(n: str, offset: int = 0) -> str:
    """The id of the n-th row, in SQL: the lower it is, the older is its job."""
    return (
        f"CAST(lpad(to_hex({FIRST_MS + offset} + {n}), 12, '0') || '7' || lpad(to_hex({n} % 4096), 3, '0') || '8' || "
        f"lpad(to_hex({n}), 15, '0') AS uuid)"
    )


def _id(n: int, offset: int = 0) -> str:
    digits = f"{FIRST_MS + offset + n:012x}7{n % 4096:03x}8{n:015x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


ID = id_of("n")
_APPROVED, _ZERO = _id(2, LIVE_OFFSET), "00000000-0000-0000-0000-000000000000"
QUEUE = "CASE WHEN n % 10 < 6 THEN 'mail' ELSE 'queue-' || (n % 24) END"
LABELS = {
    "queue": QUEUE,
    "name": "'job_' || (n % 37)",
    "tags": "CASE WHEN n % 9 = 0 THEN json_build_array('eu', 'customer:' || n % 5000) END",
    "metadata": "CASE WHEN n % 11 = 0 THEN json_build_object('case', CAST(n AS text)) END",
}
LIVE_JOBS = {
    **LABELS,
    "id": id_of("n", LIVE_OFFSET),
    "state": "CASE WHEN n % 50 = 0 THEN 'running' WHEN n % 20 = 1 THEN 'waiting' ELSE 'queued' END",
    "holder": f"CASE WHEN n % 50 = 0 THEN {id_of('(n % 300)')} END",
    "claimed_at": f"CASE WHEN n % 50 = 0 THEN {NOW} - n % 900 * INTERVAL '1 s' END",
    "attempt": "CASE WHEN n % 50 = 0 THEN 1 ELSE 0 END",
    "gate": "CASE WHEN n % 20 = 1 AND n % 50 > 0 THEN 'key:account-' || n % 800 END",
    "exclusive": "CASE WHEN n % 20 = 1 THEN 'account-' || n % 800 END",
    "exclusive_at_once": "CASE WHEN n % 20 = 1 THEN 1 END",
    "priority": "n % 3",
    # 8 shares with 12,500 jobs each, of which some run, and 300 with some 330.
    "share": "CASE n % 10 WHEN 0 THEN 'whale-' || n / 10 % 8 WHEN 5 THEN 'tenant-' || n / 10 % 300 END",
    "run_at": f"{NOW} - n % 86400 * INTERVAL '1 s'",
    "submitted_at": f"{NOW} - n % 86400 * INTERVAL '1 s'",
}
ENDED = f"{NOW} - (5000000 - n) * INTERVAL '0.5 s'"
FINISHED_JOBS = {
    **LABELS,
    "id": ID,
    "state": "CASE WHEN n % 33 = 0 THEN 'failed' WHEN n % 200 = 1 THEN 'cancelled' ELSE 'succeeded' END",
    "attempt": "1",
    "gate": "NULL",
    "exclusive": "NULL",
    "exclusive_at_once": "NULL",
    "ended_at": ENDED,
    "run_at": ENDED,
    "submitted_at": ENDED,
    "result": "json_build_object('pages', n % 90)",
    "error": "CASE WHEN n % 33 = 0 THEN json_build_object('type', 'ValueError', 'message', 'no ' || n) END",
}
WORKERS = f"""
INSERT INTO fencerow.workers (id, state, name, host, pid, info, lease_s, registered_at, renewed_at, lease_until)
SELECT {ID}, 'alive', 'worker-' || n, 'host-' || n % 20, n, NULL, 30, {NOW}, {NOW}, now() + INTERVAL '1 day'
FROM generate_series(0, 299) AS n
"""
AUDIT = f"""
INSERT INTO fencerow.audit (at, person, via, kind, verb, target, detail)
SELECT {NOW} - (200000 - n) * INTERVAL '1 s', 'person-' || n % 50, 'command', 'job', 'cancelled',
       'job-' || n % 90000, '{{}}'
FROM generate_series(1, 200000) AS n
"""
EVENTS = f"""
INSERT INTO fencerow.events (seq, topic, key, bucket, data, bytes, published_at)
SELECT n, 'topic.' || n % 12, 'key-' || n % 900, n % 64, '{{}}', 2, {NOW} - (200000 - n) * INTERVAL '0.1 s'
FROM generate_series(1, 200000) AS n;
UPDATE fencerow.event_marks SET settled = 200000;
INSERT INTO fencerow.event_groups (name, topics, partitions, outcomes, created_at)
SELECT 'group-' || n, '["topic.*"]', 8, false, {NOW} FROM generate_series(1, 12) AS n;
INSERT INTO fencerow.event_cursors (grp, part, cursor)
SELECT 'group-' || n, part, n * 10000 FROM generate_series(1, 12) AS n, generate_series(0, 7) AS part;
INSERT INTO fencerow.event_asides (grp, part, seq, event_id, deliveries, due_at, parked_at)
SELECT 'group-1', n % 8, n, n, 20, {NOW}, {NOW} FROM generate_series(1, 2000) AS n
"""
WEBHOOKS = f"""
INSERT INTO fencerow.webhook_endpoints
    (id, name, url, secret, events, with_result, in_order, timeout_s, attempts_max, state, created_at, changed_at)
SELECT {ID}, 'endpoint-' || n, 'https://hooks.example/' || n, 'whsec_x', '["job.succeeded"]', false,
       'none', 10, 20, 'enabled', {NOW}, {NOW} FROM generate_series(1, 40) AS n;
INSERT INTO fencerow.webhook_deliveries
    (endpoint_id, event_id, webhook_id, topic, ended_id, body, job_id, created_at, attempts, delivered_at)
SELECT {id_of("(1 + n % 40)")}, n, 'msg_' || n, 'job.succeeded', {ID}, '{{}}',
       {id_of("n", 5)}, {NOW}, 1, CASE WHEN n % 20 > 0 THEN {NOW} END FROM generate_series(1, 200000) AS n
"""
HANDOVERS = f"""
INSERT INTO fencerow.handovers (job_id, receiver, key, hold_s, name, lined_at, state, ended_at, held_until)
SELECT {ID}, 'receiver-' || n % 5, 'key-' || n % 2000, 60, 'job_1', {NOW}, 'succeeded', {NOW}, {NOW}
FROM generate_series(1, 100000) AS n
"""
MUTEXES = f"""
INSERT INTO fencerow.mutexes (key, token, holder, stale_s, since, until, host, pid)
SELECT 'mutex-' || n, 1, CASE WHEN n % 3 = 0 THEN {ID} END, 60, {NOW}, now() + INTERVAL '1 hour', 'host', 1
FROM generate_series(1, 20000) AS n
"""
# 20 flows under way with 20,000 jobs each, of which one waits for 10,000 at once; 20,000 flows of 40 that have ended.
LIVE_ID, ENDED_ID = id_of("(f * 20000 + k + 1)", LIVE_OFFSET), id_of("((f - 20) * 40 + k + 1)")
FLOWS = f"""
INSERT INTO fencerow.flows (id, name, digest, submit_id, jobs, queues, submitted_at, submitted_by, ended_at)
SELECT {ID}, 'flow-' || n % 40, 'x', {ID}, CASE WHEN n < 20 THEN 20000 ELSE 40 END, ARRAY['default'],
       {NOW} - n * INTERVAL '10 s', 'ada', CASE WHEN n >= 20 THEN {NOW} END FROM generate_series(0, 20019) AS n;
INSERT INTO fencerow.flow_jobs (job_id, flow_id, name, job_name, place, level, stage, is_read, woken_at)
SELECT {LIVE_ID}, {id_of("f")}, 'part ' || k, 'job_' || k % 5, k, k / 200, false, false,
       CASE WHEN k < 200 THEN {NOW} END
FROM generate_series(0, 19) AS f, generate_series(0, 19999) AS k;
INSERT INTO fencerow.flow_jobs
    (job_id, flow_id, name, job_name, place, level, stage, is_read, woken_at, state, told, attempt, ended_at)
SELECT {ENDED_ID}, {id_of("f")}, 'part ' || k, 'job_' || k % 5, k, k, k = 39, false, {NOW},
       CASE WHEN f % 50 = 0 AND k = 20 THEN 'failed' ELSE 'succeeded' END, true, 1, {NOW}
FROM generate_series(20, 20019) AS f, generate_series(0, 39) AS k;
INSERT INTO fencerow.flow_edges (job_id, before_id, flow_id, policy)
SELECT {LIVE_ID}, {id_of("(f * 20000 + k - 199)", LIVE_OFFSET)}, {id_of("f")}, 'needs'
FROM generate_series(0, 19) AS f, generate_series(200, 19999) AS k;
INSERT INTO fencerow.flow_edges (job_id, before_id, flow_id, policy)
SELECT {id_of("40000", LIVE_OFFSET)}, {LIVE_ID}, {id_of("f")}, 'needs'
FROM generate_series(1, 1) AS f, generate_series(0, 9999) AS k;
INSERT INTO fencerow.flow_edges (job_id, before_id, flow_id, policy, state)
SELECT {ENDED_ID}, {id_of("((f - 20) * 40 + k)")}, {id_of("f")}, 'needs', 'succeeded'
FROM generate_series(20, 20019) AS f, generate_series(1, 39) AS k
"""
# 20 steps of each of 20,000 jobs and 1,000 of one, signals, and jobs that sleep.
STEPS = f"""
INSERT INTO fencerow.job_steps (job_id, name, kind, seq, result, attempt, at, took_s)
SELECT {ID}, 'step ' || k, 'step', k, json_build_object('at', k), 1, {NOW}, 0.2
FROM generate_series(1, 20000) AS n, generate_series(1, 20) AS k WHERE n <> 66 OR k < 1;
INSERT INTO fencerow.job_steps (job_id, name, kind, seq, result, attempt, at, took_s)
SELECT {id_of("66")}, 'step ' || k, 'step', k, to_json(repeat('x', 4000)), 1, {NOW}, 0.2
FROM generate_series(1, 1000) AS k;
INSERT INTO fencerow.job_signals (id, job_id, name, data, sent_at)
SELECT {ID}, {id_of("(n % 20000)")}, 'approved', '{{}}', {NOW} FROM generate_series(1, 100000) AS n;
INSERT INTO fencerow.job_waits (job_id, name, attempt, until, look_at, since)
SELECT {id_of("n", LIVE_OFFSET)}, 'sleep', 0, {NOW}, {NOW}, {NOW} FROM generate_series(1, 100000) AS n
"""
# 50,000 questions that can be answered, and as many that cannot; 40 relays; attempts worked over HTTP; hooks.
LATER = f"""
INSERT INTO fencerow.job_approvals (id, job_id, signal, asks, digest, made_by, made_at, expires_at, answered_at, answer)
SELECT {ID}, CASE WHEN n % 2 = 0 THEN {id_of("n", LIVE_OFFSET)} ELSE {ID} END, 'approved', 'Pay ' || n || ' EUR?', 'x',
       'ada', {NOW} - n * INTERVAL '1 s', {NOW} + n * INTERVAL '10 s', CASE WHEN n % 4 = 1 THEN {NOW} END,
       CASE WHEN n % 4 = 1 THEN true END
FROM generate_series(1, 100000) AS n;
INSERT INTO fencerow.relays (name, direction, place, created_at)
SELECT 'relay-' || n, CASE WHEN n % 4 = 0 THEN 'out' ELSE 'in' END, 'kafka://broker-' || n || '/orders', {NOW}
FROM generate_series(1, 40) AS n;
INSERT INTO fencerow.relay_readers (relay, holder, name, lease_until, trouble, trouble_since)
SELECT 'relay-' || n, {ID}, 'worker-' || n, now() + INTERVAL '1 day', CASE WHEN n % 9 = 0 THEN 'no broker' END,
       CASE WHEN n % 9 = 0 THEN {NOW} END FROM generate_series(1, 40) AS n;
INSERT INTO fencerow.relay_parts (relay, part, position, holder, taken, unread, lag, moved_at)
SELECT 'relay-' || n, part, part * 1000, {ID}, 100000, 3, part, {NOW}
FROM generate_series(1, 40) AS n, generate_series(0, 31) AS part WHERE n % 4 > 0;
INSERT INTO fencerow.relay_unread (relay, part, position, generation, key, raw, bytes, error, at)
SELECT 'relay-' || (1 + n % 40), n % 32, n, 0, 'key-' || n, repeat('QUJD', 1000), 3000, 'it is no JSON', {NOW}
FROM generate_series(1, 50000) AS n;
INSERT INTO fencerow.worked_attempts
    (job_id, attempt, digest, sent_at, failures, until, give_up_at, silent_s, deferred, look_at, answered_at, outcome)
SELECT {ID}, 1, 'x', {NOW}, 0, {NOW}, {NOW}, 60, true, NULL, {NOW}, 'succeeded' FROM generate_series(1, 200000) AS n;
INSERT INTO fencerow.worked_attempts
    (job_id, attempt, digest, sent_at, failures, until, give_up_at, silent_s, deferred, look_at)
SELECT {id_of("n", LIVE_OFFSET)}, 1, 'x', {NOW}, 0, {NOW}, {NOW} + INTERVAL '1 h', 60, true,
       {NOW} + (n - 2000) * INTERVAL '1 s' FROM generate_series(1, 100000) AS n;
INSERT INTO fencerow.hook_tallies (hook, received, received_at, repeated, refused)
SELECT 'hook-' || n, n, {NOW}, 0, 0 FROM generate_series(1, 200) AS n
"""
NONE_HERE = ("schedule", "limit")  # pages of one that nobody has made here
# Each screen at each address where it finds much, and searches that find little.
ADDRESSES: Mapping[str, tuple[dict[str, str], ...]] = {
    "jobs": tuple(
        {"q": text}
        for text in (
            "",
            "queue:mail",
            "state:failed",
            "state:queued queue:mail",
            "queue:queue-7 state:succeeded",
            "job:job_5",
            "job:job_5 state:failed",
            "tag:eu",
            "tag:customer:77",
            "meta:case=220",
            "after:2h",
            "job:no_such_job",
        )
    ),
    "bulk": (
        {"verb": "cancel", "q": "queue:mail"},
        {"verb": "revive", "q": "tag:customer:77"},
        {"verb": "revive", "q": "job:no_such_job", "exact": "1"},
    ),
    "flows": ({}, {"state": "running"}, {"state": "failed"}, {"name": "flow-7"}, {"name": "none"}),
    "flow": ({}, {"state": "failed"}, {"after": "19900"}),
    "job": ({}, {"steps": "800"}),
    "backfill": (),  # its rows are few, and are those of a table of the user's
    "audit": ({}, {"person": "person-7"}, {"target": "job-77"}),
    "event_group": ({"name": "group-1"},),
    "key": ({"key": "account-1"},),
    "approvals": ({}, {"job": _APPROVED}, {"after": f"{NOW_MS + 300_000_000}000-{_ZERO}"}),
    "worked": ({}, {"after": f"{NOW_MS + 30_000_000}000-{_ZERO}"}),
    "relay": ({"name": "relay-1"}, {"name": "relay-4"}),
    "webhooks": ({}, {"endpoint": "endpoint-7"}, {"state": "open"}),
    "delivery": ({"endpoint": "endpoint-8", "event": "7"},),
    "handovers": ({}, {"receiver": "receiver-1"}, {"receiver": "receiver-1", "key": "key-1"}),
}


@dataclass
class Recording(Cost):
    """A cost that keeps what it was asked for."""

    asked: list[Statement] = field(default_factory=list)

    def _asked(self, statement: Statement) -> Statement:
        self.asked.append(statement)
        return super()._asked(statement)


async def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", type=int, default=LIVE)
    parser.add_argument("--finished", type=int, default=FINISHED)
    parser.add_argument("--save", type=Path, help="Write what was found there, as JSON.")
    parser.add_argument("--only", nargs="*", default=(), help="These screens alone.")
    parser.add_argument("--no-plans", action="store_true", help="Take the times alone.")
    parser.add_argument("--on", help="The URL of a database that was filled before.")
    parser.add_argument(
        "--stay", type=Path, help="Fill one, write its URL there, and stay until the input ends."
    )
    options = parser.parse_args()
    if options.on:
        return await looked(options.on, options)
    with PostgresServer(settings=SETTINGS) as server:
        url = server.create_role_and_schema()
        await fill(url, options.live, options.finished)
        if options.stay is None:
            return await looked(url, options)
        options.stay.write_text(url, "utf-8")
        await asyncio.to_thread(sys.stdin.read)
    return 0


async def looked(url: str, options: argparse.Namespace) -> int:
    """Look at everything, and keep what was found."""
    set_clock(url)
    views = await walked(url, options.only, with_plans=not options.no_plans)
    keep(options.save, {"live": options.live, "finished": options.finished, "views": views})
    return 1 if any(each["faults"] for each in views) else 0


def set_clock(url: str) -> None:
    """Let the database's clock go on from the instant of the rows, whenever they were made."""
    text = f"SELECT clock_timestamp() - INTERVAL ''{time.time() - NOW_MS / 1e3:.6f} s''"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"CREATE OR REPLACE FUNCTION fencerow.now() RETURNS timestamptz LANGUAGE sql VOLATILE AS '{text}'".encode()
        )


async def walked(url: str, only: Sequence[str], *, with_plans: bool) -> list[dict[str, Any]]:
    """Every view of every screen, measured."""
    found = []
    async with App(url) as app:
        for screen in all_screens():
            for at in places(screen) if not only or screen.name in only else ():
                found.append(await measured(app, url, screen, *at, with_plans=with_plans))
                print(found[-1]["line"], flush=True)
    return found


async def _job(n: int) -> None: ...


async def fill(url: str, live: int, finished: int) -> None:
    """Make the rows. Those of jobs are copies of one that was submitted, with what is different written over it."""
    async with App(url) as app:
        app.migrate()
        app.job(name="job_5")(_job)
        await app.asubmit_by_name("job_5", {"n": 1}, exclusive="account-1")
    with psycopg.connect(url, autocommit=True) as connection:
        later = taken_away(connection)
        for table, values, count in (("finished_jobs", FINISHED_JOBS, finished), ("jobs", LIVE_JOBS, live)):
            columns = [
                str(row[0])
                for row in connection.execute(
                    "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND "
                    "NOT attisdropped AND attgenerated = '' ORDER BY attnum", [f"fencerow.{table}"],
                )
            ]  # fmt: skip
            written = ", ".join(values.get(each, f"one.{each}") for each in columns)
            said(f"{count:,} {table}")
            connection.execute(
                f"INSERT INTO fencerow.{table} ({', '.join(columns)}) SELECT {written} "
                f"FROM (SELECT * FROM fencerow.jobs WHERE exclusive IS NOT NULL LIMIT 1) AS one, "
                f"generate_series(1, {count}) AS n".encode()
            )
        for text in (*later, WORKERS, AUDIT, EVENTS, WEBHOOKS, HANDOVERS, MUTEXES, FLOWS, STEPS, LATER):
            connection.execute(text.encode())
        said("vacuum")
        connection.execute("VACUUM ANALYZE")


def taken_away(connection: psycopg.Connection) -> list[str]:
    """Drop the indexes of the job tables, and return what makes them again: that is faster than filling them."""
    found = connection.execute(
        "SELECT indexname, indexdef FROM pg_indexes WHERE tablename IN ('jobs', 'finished_jobs') AND indexname NOT IN "
        "(SELECT conname FROM pg_constraint)"
    ).fetchall()
    for name, _ in found:
        connection.execute(f"DROP INDEX fencerow.{name}".encode())
    return [str(text).replace(" ON ONLY ", " ON ") for _, text in found]


def places(screen: Screen) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """Where a screen is looked at: the parameters of its path, and those behind the `?`."""
    if screen.name in NONE_HERE:
        return
    ids = IDS.get(screen.name, (_id(66),)) if "{id}" in screen.path else (None,)
    for each in ids:
        for query in ADDRESSES.get(screen.name, ({},)):
            yield {} if each is None else {"id": each}, query


# Large and under way, and small and ended; a job with steps, one that waits for 10,000, one of a large flow.
IDS: Mapping[str, tuple[str, ...]] = {
    "worker": (_id(7),),
    "flow": (_id(1), _id(66)),
    "job": (_id(66), _id(40000, LIVE_OFFSET), _id(30000, LIVE_OFFSET)),
}


async def measured(
    app: App, url: str, screen: Screen, params: dict[str, str], query: dict[str, str], *, with_plans: bool
) -> dict[str, Any]:
    """One view: what it costs."""
    took: list[float] = []
    cost, error = Recording(), ""
    for _ in range(TIMES):
        cost = Recording(screen.statements_max)
        began = time.perf_counter()
        try:
            await screen.view(Look(app, params, query, cost, Problems(list), Redactor()))
        except FencerowError as refused:
            error = f"{type(refused).__name__}: {refused.what}"
        took.append(time.perf_counter() - began)
    asked = cost.asked if with_plans else []
    plans = [plan for each in asked if (plan := planned(app, url, each)) is not None]
    buffers = sum(each["buffers"] for each in plans)
    faults = [f"{each['statement']}: sequential scan of {scan}" for each in plans for scan in each["scans"]]
    faults += [f"{each['statement']}: {each['error']}" for each in plans if "error" in each]
    faults += [f"{cost.rows} rows"] if cost.rows > ROWS_MAX else []
    faults += [f"{buffers} buffers"] if buffers > BUFFERS_MAX else []
    faults += [error] if error else []
    faults += [f"{median(took) * 1e3:.0f} ms"] if median(took) > MS_MAX / 1e3 else []
    path = screen.path.replace("{id}", params["id"][-6:]) if params else screen.path
    at = path + (f"?{'&'.join(f'{k}={v}' for k, v in query.items())}" if query else "")
    line = (
        f"{screen.name:<12} {at:<48} {cost.statements} statements {cost.rows:>5} rows {median(took) * 1e3:7.1f} ms "
        f"(least {min(took) * 1e3:6.1f}) "
        f"{buffers:>7} buffers  {'; '.join(faults)}"
    )
    return {
        "screen": screen.name, "at": at, "statements": cost.statements, "rows": cost.rows,
        "median_ms": round(median(took) * 1e3, 1), "least_ms": round(min(took) * 1e3, 1),
        "buffers": buffers, "faults": faults, "plans": plans, "line": line,
    }  # fmt: skip


def planned(app: App, url: str, statement: Statement) -> dict[str, Any] | None:
    """What the server does for a statement: the buffers that it reads, and the large tables that it walks through."""
    query = app.engine.queries.of(statement)
    if len(query.statements) != 1 or not query.statements[0].lstrip().startswith(("SELECT", "WITH")):
        return None
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET statement_timeout = '20s'")
        try:
            row = connection.execute(
                f"EXPLAIN (ANALYZE, BUFFERS, FORMAT json) {pyformat(query.statements[0])}".encode(),
                statement.params,
            ).fetchone()
        except psycopg.Error as error:
            return {
                "statement": statement.name,
                "ms": None,
                "buffers": 0,
                "scans": [],
                "error": f"{error}".strip(),
            }
    assert row is not None
    whole = row[0][0]
    plan = whole["Plan"]
    return {
        "statement": statement.name,
        "ms": round(whole["Execution Time"] + whole["Planning Time"], 1),
        "buffers": plan["Shared Hit Blocks"] + plan["Shared Read Blocks"],
        "scans": sorted(set(scans(plan))),
    }


def scans(plan: Mapping[str, Any]) -> Iterator[str]:
    """Tables that a plan walks through to find few rows in many."""
    seen = plan.get("Actual Rows", 0) + plan.get("Rows Removed by Filter", 0)
    if plan["Node Type"] == "Seq Scan" and seen * plan.get("Actual Loops", 1) > LARGE:
        yield str(plan["Relation Name"])
    for each in plan.get("Plans", ()):
        yield from scans(each)


def said(text: str) -> None:
    print(f"# {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
