"""The database at the end of a run, read once, at rest: every job, what was noted, and the effects of the handlers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from fencerow.core.model.state import State
from fencerow.db.engine import Engine
from fencerow.db.postgres import PostgresEngine
from fencerow.db.queries import load, postgres_names, sqlite_names
from fencerow.db.run import Steps, as_int, execute, operation, text_or_none
from fencerow.db.sqlite import SqliteEngine
from fencerow.operators import looking
from fencerow_proof.arena.invariants import together
from fencerow_proof.history.engine import RecordingEngine

PACKAGE = "fencerow_proof.history"


@dataclass(frozen=True, slots=True)
class FinalRow:
    """One job as it stands."""

    name: str
    state: State
    attempt: int
    holder: str | None
    failures: int
    crashes: int
    scope: str | None
    key: str | None
    claimed_us: int | None
    ended_us: int | None
    spent: bool = False  # only its id is left


@dataclass(frozen=True, slots=True)
class Noted:
    """One row of a job's timeline."""

    kind: str
    attempt: int
    at_us: int
    claimed_us: int | None
    became: str | None


@dataclass(slots=True)
class Final:
    """All that the checker asks of a database. `effects` is None when there is no table of them."""

    rows: dict[str, list[FinalRow]]
    noted: dict[str, list[Noted]]
    counted: Counter[State]
    broken: list[str]
    effects: dict[str, list[int]] | None = field(default=None)


def read_final(engine: Engine, *, effects: bool = False) -> Final:
    """Read the end of a run. Nothing may be running any more: it is no snapshot.

    Raises:
        DatabaseError: the database cannot be read, or its tables are missing.
    """
    real = _prepared(engine)
    return Final(
        rows=real.run(_rows()),
        noted=real.run(_noted()),
        counted=_counted(real),
        broken=_broken(real),
        effects=real.run(_effects()) if effects else None,
    )


def create_effects(engine: Engine) -> None:
    """Make the table `effect` beside the job tables (`fencerow_effect` in a SQLite file), unless it is there.

    A handler writes `(job, attempt)` into it inside `job.transaction()`.
    """
    _prepared(engine).run(_create_effects())


def _prepared(engine: Engine) -> PostgresEngine | SqliteEngine:
    """The real engine behind a recording one, with the queries of this module."""
    real = engine.inner if isinstance(engine, RecordingEngine) else engine
    assert isinstance(real, PostgresEngine | SqliteEngine), "an engine of ours is expected"
    if "final_rows" not in real.queries:
        real.queries = real.queries.joined(
            load(PACKAGE, "postgres", "postgres", postgres_names(real.schema))
            if isinstance(real, PostgresEngine)
            else load(PACKAGE, "sqlite", "sqlite", sqlite_names(real.prefix))
        )
    return real


@operation(alone=True, repeatable=True, writes="")
def _rows() -> Steps[dict[str, list[FinalRow]]]:
    found: dict[str, list[FinalRow]] = {}
    for row in (yield from execute("final_rows")):
        found.setdefault(str(row[0]), []).append(
            FinalRow(
                str(row[1]),
                State(str(row[2])),
                as_int(row[3]),
                text_or_none(row[4]),
                as_int(row[5]),
                as_int(row[6]),
                text_or_none(row[7]),
                text_or_none(row[8]),
                _maybe_whole(row[9]),
                _maybe_whole(row[10]),
                bool(row[11]),
            )
        )
    return found


@operation(alone=True, repeatable=True, writes="")
def _noted() -> Steps[dict[str, list[Noted]]]:
    found: dict[str, list[Noted]] = {}
    for row in (yield from execute("final_events")):
        found.setdefault(str(row[0]), []).append(
            Noted(str(row[1]), as_int(row[2]), as_int(row[3]), _maybe_whole(row[4]), text_or_none(row[5]))
        )
    return found


@operation(alone=True, repeatable=True, writes="")
def _effects() -> Steps[dict[str, list[int]]]:
    found: dict[str, list[int]] = {}
    for row in (yield from execute("final_effects")):
        found.setdefault(str(row[0]), []).append(as_int(row[1]))
    return found


@operation()
def _create_effects() -> Steps[None]:
    yield from execute("create_effects")


def _counted(engine: Engine) -> Counter[State]:
    """What the counters of the dashboard say, by state."""
    counted: Counter[State] = Counter()
    for count in engine.run(looking.counts()):
        counted[count.state] += count.jobs
    for _, state, jobs in engine.run(looking.finished_counts()):
        counted[state] += jobs
    return counted


def _broken(engine: PostgresEngine | SqliteEngine) -> list[str]:
    """The names of the invariants of the tables that do not hold."""
    names = (
        postgres_names(engine.schema) if isinstance(engine, PostgresEngine) else sqlite_names(engine.prefix)
    )
    return _ask(engine, together(names))


def _ask(engine: Engine, text: str) -> list[str]:
    with engine.session() as session:
        return [str(row[0]) for row in session.connection.execute(text).fetchall()]


def _maybe_whole(value: object) -> int | None:
    return None if value is None else as_int(value)
