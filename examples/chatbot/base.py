"""The app, its databases, and the addresses of the world outside. All of it comes from the environment."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import psycopg

from fencerow import App
from fencerow.limits import Limit, Rate

# A channel takes so much of each workspace. One with 10,000 recipients keeps no other waiting.
PACE = Limit("channel", rate=Rate(4, per_s=1, burst=4), per_key=True)
app = App(limits=[PACE])  # FENCEROW_URL
OUTSIDE = os.environ.get("CHATBOT_OUTSIDE", "")
SHARDS: Sequence[str] = os.environ.get("CHATBOT_SHARDS", "").split()
STEPS = Path(__file__).parent / "steps"

Connection = Any  # of sqlite3 or psycopg


def shard_of(workspace: str) -> str:
    """The URL of the database that holds a workspace's messages. It never changes while SHARDS stays as it is."""
    return SHARDS[int.from_bytes(sha256(workspace.encode()).digest()[:8], "big") % len(SHARDS)]


@contextmanager
def connected(url: str | None = None) -> Iterator[Connection]:
    """A connection of our own, to the app's database or another. Leaving commits, an error rolls back."""
    url = url or app.config.url or ""
    opened: Connection
    if url.startswith("sqlite:///"):
        opened = sqlite3.connect(url.removeprefix("sqlite:///"), timeout=10)
    else:
        opened = psycopg.connect(url, prepare_threshold=None)  # a pooler may stand in between
    with closing(opened), opened:
        yield opened


def execute(db: Connection, statement: str, values: Sequence[Any] = ()) -> list[Any]:
    """Run a statement written for SQLite on either of the two, and return its rows."""
    if not isinstance(db, sqlite3.Connection):
        statement = statement.replace("?", "%s")
    cursor = db.execute(statement, values)
    return cursor.fetchall() if cursor.description else []
