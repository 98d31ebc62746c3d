"""Tables of a user as the tests declare them: an extraction with a second stage, and a run with a lease."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from fencerow import Config
from fencerow.guards.transitions import Lease, Move, Overdue, SubState, Transitions
from tests.kit.jobs import AnyEngine

TYPES = {
    "postgres": {"text": "text", "whole": "bigint", "instant": "timestamptz"},
    "sqlite": {"text": "TEXT", "whole": "INTEGER", "instant": "INTEGER"},
}

EXTRACTIONS = """
CREATE TABLE {name} (
    id {text} PRIMARY KEY,
    status {text} NOT NULL,
    attempts {whole} NOT NULL DEFAULT 0,
    started_at {instant},
    submitted_at {instant},
    finished_at {instant},
    result {text},
    error {text},
    boxes_status {text},
    boxes_fence {whole},
    boxes_attempts {whole},
    boxes_until {instant},
    boxes_error {text},
    tenant {text}
)
"""
LEASE_S = 3600.0
MARGIN_S = 600.0  # what may pass between two looks at a moved clock, on a machine that stands still
MAIN = Lease(lease_s=LEASE_S, since="started_at", fence="attempts", sets="result")
BOXES = Lease(
    lease_s=LEASE_S,
    until="boxes_until",
    fence="boxes_fence",
    attempts="boxes_attempts",
    attempts_max=3,
    when_stale="requeue",
    when_spent="give_up",
)
MOVES = [
    Move("claim", "queued", "running", lease=MAIN),
    Move("succeed", "running", "succeeded", stamps="finished_at", sets="result"),
    Move(
        "succeed_with_boxes",
        "running",
        "succeeded",
        stamps="finished_at",
        sets="result",
        enters={"boxes": "pending"},
    ),
    Move("fail", "running", "failed", stamps="finished_at", sets=("error", "result")),
    Move("requeue", "running", "queued", clears="started_at"),
    Move("cancel", "queued", "cancelled"),
    Move("kill", ["queued", "running"], "cancelled", by_anyone=True),
    Move("claim_of_tenant", "queued", "running", lease=MAIN, where="tenant = :tenant OR tenant IS NULL"),
]
SUB_MOVES = [
    Move("claim", "pending", "running", lease=BOXES),
    Move("succeed", "running", "succeeded", sets="result"),
    Move("fail", "running", "failed", sets="boxes_error"),
    Move("requeue", "running", "pending"),
    Move("give_up", ["pending", "running"], "failed"),
    Move("ask", None, "pending"),
]


def extractions(place: Any, table: str, **more: Any) -> Transitions:
    """The declaration of flydocs: the main state, and the boxes as a sub-state."""
    return Transitions(
        place,
        table=table,
        column="status",
        states=["queued", "running", "succeeded", "failed", "cancelled"],
        moves=MOVES,
        overdue=[Overdue("queued", ("started_at", "submitted_at"), 600)],
        sub_states=[
            SubState(
                name="boxes",
                column="boxes_status",
                states=["pending", "running", "succeeded", "failed"],
                moves=SUB_MOVES,
                within="succeeded",
                overdue=[Overdue("pending", "finished_at", 1320)],
            )
        ],
        order=("submitted_at",),
        **more,
    )


@dataclass(frozen=True)
class AtEngine:
    """A place that is a bare engine."""

    engine: Any
    config: Config = field(default_factory=Config)

    def check_or_create(self) -> None:
        """It was migrated by the fixture."""


def where(engine: AnyEngine, name: str = "extractions") -> str:
    """The table's name: in our schema, since the role of the tests may make tables nowhere else."""
    return f"fencerow.{name}" if engine.dialect == "postgres" else name


def create(engine: AnyEngine, text: str = EXTRACTIONS, name: str = "extractions") -> str:
    """Make the table; returns its name."""
    with engine.session() as session:
        session.connection.execute(text.format(name=where(engine, name), **TYPES[engine.dialect]))
    return where(engine, name)


@contextmanager
def connected(engine: AnyEngine) -> Iterator[Any]:
    """A transaction of our own, to look or to write round the moves."""
    with engine.session() as session:
        yield session.connection


def sql(engine: AnyEngine, text: str, **params: Any) -> list[tuple[Any, ...]]:
    """One statement outside the moves, with :params; rows as tuples."""
    written = text
    for key in params:
        written = written.replace(f":{key}", f"%({key})s" if engine.dialect == "postgres" else f":{key}")
    with connected(engine) as connection:
        cursor = connection.execute(written, params)
        return [tuple(row) for row in cursor.fetchall()] if cursor.description else []


def insert(engine: AnyEngine, table: str, *ids: str, **columns: Any) -> None:
    """Rows as the user's own code makes them."""
    given = {"status": "queued", **columns}
    names, marks = ", ".join(["id", *given]), ", ".join([":id", *(f":{key}" for key in given)])
    for row_id in ids:
        sql(engine, f"INSERT INTO {table} ({names}) VALUES ({marks})", id=row_id, **given)
