"""Schema changes: under a lock that was taken before the version was read, or two of them meet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fencerow_proof.check.findings import Findings, shown
from fencerow_proof.check.kinds import Action, Kind
from fencerow_proof.check.report import Fault, Finding


def judge_schema(trace: Sequence[Action], findings: Findings, jobs_table: str) -> list[str]:
    """Look at each schema change of a run; returns the evidence for those that are locked."""
    ours = jobs_table.removesuffix("jobs")
    evidence = []
    for position, action in enumerate(trace):
        if action.kind is not Kind.SCHEMA:
            continue
        first_read = _first_read(trace[:position], ours)
        lock = next(_locks(trace[:position], action, ours), None)
        if lock is not None and (first_read is None or trace.index(lock) <= trace.index(first_read)):
            evidence.append(f"{shown(action)} under {shown(lock)}")
            continue
        findings.add(_unlocked(action, lock, first_read))
    return evidence


def _unlocked(action: Action, lock: Action | None, first_read: Action | None) -> Finding:
    if lock is None:
        what = "the schema is changed and no lock is held: two runs that come at once both do it"
    else:
        what = (
            f"the lock is taken after what decides it was read, at {first_read.place if first_read else '?'}"
        )
    related = tuple(each.place for each in (lock, first_read) if each is not None)
    return Finding(Fault.SCHEMA_UNLOCKED, action.place, action.line, what, related=related)


def _first_read(actions: Sequence[Action], ours: str) -> Action | None:
    return next(
        (
            each
            for each in actions
            if each.kind is Kind.READ
            and each.reads
            and not all(table.startswith(ours) for table in each.reads)
        ),
        None,
    )


def _locks(actions: Sequence[Action], change: Action, ours: str) -> Iterator[Action]:
    """The locks that are still held at a change, the first taken first."""
    ended = max(
        (
            number
            for number, each in enumerate(actions)
            if each.kind in (Kind.COMMIT, Kind.ROLLBACK) and each.session == change.session
        ),
        default=-1,
    )
    begun = False
    for number, each in enumerate(actions):
        mine = each.session == change.session and number > ended
        begun = begun or (mine and each.kind is Kind.BEGIN)
        if any("mutex" in table and table.startswith(ours) for table in each.writes):
            yield each  # a mutex is a row: it is held beyond its transaction
        elif each.kind is Kind.LOCK and (
            mine or ("xact" not in each.text.lower() and "advisory" in each.text.lower())
        ):
            yield each
        elif mine and begun and each.driver == "sqlite3" and each.writes:
            yield each  # BEGIN IMMEDIATE, or a write: SQLite has one writer
