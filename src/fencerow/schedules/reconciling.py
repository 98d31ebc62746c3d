"""What a program declares becomes rows: made, changed, and removed when the program declares it no longer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import fencerow.schedules.definitions as definitions
import fencerow.schedules.programs as programs
from fencerow.db.locks import lock_number, take_lock
from fencerow.db.run import Row, Steps, execute, operation
from fencerow.schedules.definition import seed_of
from fencerow.schedules.definitions import RowKind, RowOrigin, WantedRow

LOCK = lock_number("schedules", "reconcile")


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What came of a program's declarations. `kept`: a person made the row of that name. `elsewhere`: no longer
    declared here, but a living worker runs the job, so that it may be another program's. `paused`: no longer declared,
    but a person paused it, so its row stays, without a fire. `newer`: a newer version of the program's declarations
    counts, this one, so nothing was changed."""

    made: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    paused: list[str] = field(default_factory=list)
    newer: int | None = None


@operation(repeatable=True, computes=True)
def reconcile(
    declared: Sequence[WantedRow],
    *,
    owner: str,
    version: int = 1,
    own: Collection[str],
    running: Collection[str],
    actor: str | None,
    take_back: bool = False,
) -> Steps[Reconciled]:
    """Make what a program declares, change what differs, and remove what it no longer declares. May be repeated.

    `own`: the jobs that the program knows. `running`: those that living workers of any program run. One reconcile after
    the other, because each looks at all that a program has declared. If a higher `version` has been declared, nothing
    is changed, unless this is to `take_back` what it said.
    """
    yield from take_lock(LOCK)
    release = programs.release_of(owner, version, declared)
    if not (yield from programs.declare(release, actor=actor, take_back=take_back)):
        (counts,) = yield from programs.counting(owner)
        return Reconciled(newer=counts.version)
    names = [each.name for each in declared]
    standing = yield from execute("lock_declared", names=names, owner=owner)
    gone, elsewhere = _gone(standing, set(names), owner, set(own), set(running))
    singles = [each.name for each in declared if each.kind is RowKind.SINGLE]
    for name, kind, origin, *_ in standing:
        if (
            kind == RowKind.HEAD and origin == RowOrigin.CODE and name in singles
        ):  # it has no entities any more
            yield from definitions.undeclare(str(name), after="")
    put = yield from definitions.put_rows(declared, RowOrigin.CODE, owner, actor)
    removed: list[str] = []
    paused: list[str] = []
    for name in gone:
        went, kept = yield from definitions.undeclare(name)
        removed += [name] if went else []
        paused += [seed_of(name, entity) for entity in kept]
    return Reconciled(
        [name for name, _ in put.made],
        [name for name, _ in put.changed],
        removed,
        sorted(str(row[0]) for row in standing if row[0] in names and row[2] == RowOrigin.PERSON),
        elsewhere,
        paused,
    )


def _gone(
    standing: Sequence[Row], names: set[str], owner: str, own: set[str], running: set[str]
) -> tuple[list[str], list[str]]:
    """What is no longer declared and goes, and what stays because another program may have declared it."""
    gone: list[str] = []
    elsewhere: list[str] = []
    for name, _kind, origin, row_owner, _digest, job in standing:
        if name in names or origin != RowOrigin.CODE or row_owner != owner:
            continue
        (elsewhere if str(job) in running and str(job) not in own else gone).append(str(name))
    return gone, elsewhere
