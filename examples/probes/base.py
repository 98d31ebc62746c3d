"""The app, and what this machine says of the probes. All of it comes from the environment."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import psycopg

from fencerow import App
from fencerow.limits import Limit, Rate

# At most so many starts at one provider: however much is behind, nobody is flooded.
PACE = Rate(5, per_s=1)

app = App(limits=[Limit("provider", rate=PACE, per_key=True)])  # FENCEROW_URL
REGISTRY = os.environ.get("PROBES_REGISTRY", "http://127.0.0.1:8002")
WINDOWS = os.environ.get("PROBES_WINDOWS", "07:00-07:20 22:00-22:20").split()
SCALE = float(os.environ.get("PROBES_SCALE", "1"))  # of all times: a show cannot wait for ten minutes

Connection = Any  # of sqlite3 or psycopg

RESULTS = """
CREATE TABLE IF NOT EXISTS results (
    job_id text PRIMARY KEY, provider text NOT NULL, kind text NOT NULL, outcome text NOT NULL, took_s real NOT NULL
)
"""
COUNTED = "CREATE TABLE IF NOT EXISTS counted (job_id text PRIMARY KEY, providers integer NOT NULL)"


@contextmanager
def connected() -> Iterator[Connection]:
    """A connection of our own to the app's database. Leaving commits, an error rolls back."""
    url = app.config.url or ""
    opened: Connection
    if url.startswith("sqlite:///"):
        opened = sqlite3.connect(url.removeprefix("sqlite:///"), timeout=10)
    else:
        opened = psycopg.connect(url, prepare_threshold=None)  # a pooler may stand in between
    with closing(opened), opened:
        yield opened


def make_tables() -> None:
    """Our own tables; repeated, it changes nothing."""
    with connected() as db:
        for table in (RESULTS, COUNTED):
            db.execute(table)


async def write(db: Connection, statement: str, values: Sequence[Any]) -> None:
    """Run a statement written for SQLite in the transaction of a job, on either of the two."""
    if isinstance(db, sqlite3.Connection):
        db.execute(statement, values)
    else:
        await db.execute(statement.replace("?", "%s"), values)
