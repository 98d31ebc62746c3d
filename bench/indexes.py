"""How long do those who work wait while an index is built over their tables?

    python bench/indexes.py [jobs] [evidence.json]

A database with so many live jobs (5,000,000) and a tenth as many finished ones is drained by processes that claim and
acknowledge. Meanwhile nothing else happens, then a migration adds a column to both tables and builds an index on each
as ours do, then a plain CREATE INDEX builds one of them: the control. Printed are the waits of single statements, in
milliseconds. Nothing is flushed to the disk: what is measured is who waits for whom, not the disk.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg

from fencerow.core.model.ids import new_id
from fencerow.core.store import store
from fencerow.core.store.attempts import Success
from fencerow.core.store.claims import Mark
from fencerow.db.migration import Migration
from fencerow.db.postgres import PostgresEngine
from fencerow.testing.postgres import PostgresServer

JOBS = 5_000_000
DRAINERS = 2
BATCH = 20
QUIET_S = 30.0
LONG_AGO_US = -(10**17)
MORE = Migration(
    9001,
    "schema_9001_more",
    """-- compatible_from: 1
SET LOCAL lock_timeout = '500ms';
ALTER TABLE fencerow.jobs ADD COLUMN more text;
ALTER TABLE fencerow.finished_jobs ADD COLUMN more text;
-- built concurrently: for the bench
CREATE INDEX jobs_more ON fencerow.jobs (name, submitted_at);
CREATE INDEX finished_jobs_more ON fencerow.finished_jobs (name, ended_at);
""",
    1,
    "checksum of more",
)
FILL = """
INSERT INTO fencerow.{table} (id, queue, name, state, run_at, attempt, attempts_max, crashes_max, snoozes_max,
                              submitted_at, ended_at, args_bytes, args)
SELECT gen_random_uuid(), 'mail', 'send', '{state}', now(), 0, 3, 3, 48, now(), {ended}, 2, '{{}}'
FROM generate_series(1, {count})
"""


@dataclass(frozen=True)
class Waits:
    """Of the statements of one phase, in milliseconds."""

    phase: str
    took_s: float
    acknowledged: int
    p50: float
    p99: float
    longest_claim: float
    longest_acknowledgement: float


def engine_of(url: str) -> PostgresEngine:
    queries = store.postgres_queries()
    found = {
        MORE.part(number): replace(queries.composed(MORE.part(number), part.text), users=False)
        for number, part in enumerate(MORE.parts)
    }
    return PostgresEngine(url, type(queries)("postgres", {**queries, **found}, queries.name_of))


def drain(url: str, results: Connection) -> None:
    """Claim and acknowledge until told to stop; then say when each statement was sent and how long it took."""
    engine = engine_of(url)
    holder = new_id()
    engine.run(store.register(holder=holder, name="w", host="h", pid=1, info="{}", lease_s=1e6))
    mark = Mark(0, run_at_us=LONG_AGO_US)
    seen: list[tuple[str, float, float]] = []
    results.send("ready")
    while not results.poll():
        began = time.monotonic()
        jobs = engine.run(
            store.claim("mail", [mark], holder=holder, names=["send"], limit=BATCH, margin_s=10.0)
        )
        seen.append(("claim", began, time.monotonic() - began))
        done = [Success(job.id, job.attempt, "1") for job in jobs]
        began = time.monotonic()
        engine.run(store.succeed(done, holder=holder))
        seen.append(("acknowledgement", began, time.monotonic() - began))
        if jobs:
            mark = Mark(0, run_at_us=jobs[-1].run_at_us, id=jobs[-1].id)
    results.send(seen)
    engine.close()


@contextmanager
def phase(url: str, name: str, found: list[Waits]) -> Iterator[None]:
    """Drain beside what happens inside."""
    spawn = multiprocessing.get_context("spawn")
    ends = [spawn.Pipe() for _ in range(DRAINERS)]
    processes = [spawn.Process(target=drain, args=(url, theirs)) for _, theirs in ends]
    for process in processes:
        process.start()
    for ours, _ in ends:
        assert ours.recv() == "ready"
    time.sleep(1.0)  # they are under way
    began = time.monotonic()
    yield
    ended = time.monotonic()
    seen: list[tuple[str, float, float]] = []
    for ours, _ in ends:
        ours.send(None)
        seen += ours.recv()
    for process in processes:
        process.join()
    inside = [(kind, took) for kind, sent, took in seen if sent + took >= began and sent <= ended]
    took = sorted(each for _, each in inside)
    longest = {
        wanted: max((each for kind, each in inside if kind == wanted), default=0.0)
        for wanted in ("claim", "acknowledgement")
    }
    found.append(
        Waits(
            name,
            round(ended - began, 1),
            BATCH * sum(kind == "acknowledgement" for kind, _ in inside),
            round(1e3 * took[len(took) // 2], 1),
            round(1e3 * took[len(took) * 99 // 100], 1),
            round(1e3 * longest["claim"], 1),
            round(1e3 * longest["acknowledgement"], 1),
        )
    )
    print(found[-1], flush=True)


def measure(url: str, jobs: int) -> tuple[list[Waits], list[str]]:
    engine = engine_of(url)
    store.migrate(engine)
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(FILL.format(table="jobs", state="queued", ended="NULL", count=jobs).encode())
        owner.execute(
            FILL.format(table="finished_jobs", state="failed", ended="now()", count=jobs // 10).encode()
        )
        print("filled", flush=True)
        found: list[Waits] = []
        told: list[str] = []
        with phase(url, "nothing else", found):
            time.sleep(QUIET_S)
        known = [*store.known_migrations("postgres"), MORE]
        with (
            patch("fencerow.core.schema.migrate.known_migrations", lambda _: known),
            phase(url, "columns added, and two indexes built concurrently", found),
        ):
            assert [each.name for each in store.migrate(engine, tell=told.append, wait_s=300)] == [MORE.name]
        whole = owner.execute("SELECT bool_and(indisvalid) FROM pg_index").fetchone()
        assert whole == (True,)
        owner.execute("DROP INDEX fencerow.jobs_more")
        with phase(url, "control: CREATE INDEX", found):
            owner.execute("CREATE INDEX jobs_more ON fencerow.jobs (name, submitted_at)")
    engine.close()
    return found, told


def main(jobs: str = str(JOBS), evidence: str | None = None) -> None:
    with PostgresServer(fast=True) as server:
        found, told = measure(server.create_role_and_schema(role="app", database="bench"), int(jobs))
    document: dict[str, Any] = {
        "jobs": int(jobs),
        "drainers": DRAINERS,
        "milliseconds": [vars(each) for each in found],
        "told": told[:: max(1, len(told) // 20)],
    }
    print(json.dumps(document, indent=1))
    if evidence:
        Path(evidence).write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
