"""Guards that a storm's workers can be made to lack. A storm that does not find such a bug proves nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fencerow.db.engine import Engine
from fencerow.db.postgres import PostgresEngine
from fencerow.db.queries import Queries
from fencerow.db.sqlite import SqliteEngine
from fencerow_proof.history.engine import RecordingEngine
from fencerow_proof.history.report import NAMES
from tests.proof.storm.plan import LIMITS

PAYLOADS_THERE = "payloads outside are there, as they were written"
TURNS_KEPT = f"history: {NAMES['I18']} (I18)"

ENDS = ("succeed", "succeed_first")  # a worker asks the second, and the first where that was refused
NOBODY_COUNTS = (
    ("count_turns", "IN ('queued', 'running')", "IN ('failed')"),
    ("count_running", "job.state = 'running'", "job.state = 'failed'"),
)
# Name of the bug: dialect: (query, the guard, what stands there instead).
BUGS: Mapping[str, Mapping[str, tuple[tuple[str, str, str], ...]]] = {
    # Who comes back after its lease is not told that it was declared dead, and finishes what belongs to nobody, or to
    # another attempt, by now.
    "nobody is fenced": {
        "postgres": (
            ("renew", "AND worker.state = 'alive'", ""),
            *(
                (end, guard, "")
                for end in ENDS
                for guard in (
                    "AND job.state IS NOT DISTINCT FROM 'running'",
                    "AND job.holder = CAST(:holder AS uuid)",
                    "AND job.attempt = outcome.attempt",
                )
            ),
        ),
        "sqlite": (
            ("renew", "AND state = 'alive'", ""),
            *(
                (end, guard, instead)
                for end in ENDS
                for guard, instead in (
                    ("WHERE job.state = 'running'", "WHERE true"),
                    ("AND +job.holder = :holder", ""),
                    ("AND job.attempt = json_extract(o.value, '$.attempt')", ""),
                )
            ),
        ),
    },
    # A sweep of the store outside does not see to which arguments the rows of live jobs refer.
    "no live job is seen": {
        "postgres": (
            (
                "referred_payloads",
                "true, job.args -> 'fencerow:outside' ->> 'name', NULL",
                "true, NULL, NULL",
            ),
        ),
        "sqlite": (
            (
                "referred_payloads",
                "1, CASE WHEN json_valid(job.args) THEN",
                "1, CASE WHEN false THEN",
            ),
        ),
    },
    # A hand-over takes every turn of a key, and of a limit that jobs name, to be free; a claim all room of its queue.
    "nobody counts": {
        "postgres": (*NOBODY_COUNTS, ("take_arrivals", "IN ('queued', 'running')", "IN ('failed')")),
        "sqlite": NOBODY_COUNTS,
    },
}


# What is found wrong of a storm whose workers have the bug: findings of these promises, with each of these words.
SHOWN_BY: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "nobody is fenced": (("every move is legal", "no late writer"), ("",)),
    "no live job is seen": ((PAYLOADS_THERE,), ("missing",)),
    "nobody counts": ((TURNS_KEPT,), ("under the key", *(f"under {name}" for name in LIMITS))),
}


def found_wrong(wrong: Mapping[str, Sequence[str]], bug: str) -> list[str]:
    """What a storm found of this bug; nothing if it did not find all of it, and so proves nothing."""
    promises, words = SHOWN_BY[bug]
    found = [each for promise in promises for each in wrong.get(promise, ())]
    return found if all(any(word in each for each in found) for word in words) else []


def beneath(engine: Engine) -> PostgresEngine | SqliteEngine:
    """The real engine under the one that records."""
    assert isinstance(engine, RecordingEngine)
    assert isinstance(engine.inner, PostgresEngine | SqliteEngine)
    return engine.inner


def spoil(engine: PostgresEngine | SqliteEngine, bug: str) -> None:
    """Take the guards out of the statements that this engine, and keepers made from it, will run."""
    engine.queries = spoiled(engine.queries, bug)


def spoiled(queries: Queries, bug: str) -> Queries:
    """These queries without the guards of the bug.

    Raises:
        ValueError: they have changed, and the guard is not where the bug looks for it.
    """
    for name, old, new in BUGS[bug][queries.dialect] if bug else ():
        queries = queries.altered(name, old, new)
    return queries
