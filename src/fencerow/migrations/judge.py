"""Which steps are left to run, from the files and the ledger: decided before anything is touched, and pure."""

from __future__ import annotations

from collections.abc import Sequence

from fencerow.migrations.errors import MigrationEdited, MigrationLate, MigrationMissing, RevertRefused
from fencerow.migrations.folder import Step
from fencerow.migrations.ledger import Noted


def left_to_run(
    steps: Sequence[Step], noted: Sequence[Noted], *, out_of_order: bool, to: int | None = None
) -> list[Step]:
    """The steps that are missing, in order, up to `to`; one that was begun outside a transaction comes first.

    A ledger that is ahead of the files is fine as long as none of them is missing below it: newer code was here.

    Raises:
        MigrationEdited, MigrationMissing: what ran is not what the files say.
        MigrationLate: a step would run after one with a higher number.
    """
    _compare(steps, noted)
    known = {line.version: line for line in noted}
    begun = [step for step in steps if step.version in known and not known[step.version].whole]
    missing = [step for step in steps if step.version not in known]
    newest = max((line.version for line in noted), default=0)
    late = [step for step in missing if step.version < newest]
    if late and not out_of_order:
        raise MigrationLate(
            f"step {late[0].up.file.name} never ran, but {newest:04d} did",
            "steps run in the order of their numbers, so that every shard comes to the same",
            f"renumber it above {newest}, or allow it with out_of_order=True",
        )
    return [step for step in [*begun, *missing] if to is None or step.version <= to]


def left_to_revert(steps: Sequence[Step], noted: Sequence[Noted], *, to: int) -> list[Step]:
    """The steps above `to` that ran, the newest first.

    Raises:
        MigrationEdited, MigrationMissing: what ran is not what the files say.
        RevertRefused: one of them has no way back. Looked at before the first is taken back.
    """
    _compare(steps, noted)
    by_version = {step.version: step for step in steps}
    found = []
    for line in sorted(noted, key=lambda line: line.version, reverse=True):
        if line.version <= to:
            continue
        step = by_version.get(line.version)
        if step is None or step.down is None:
            raise RevertRefused(
                f"step {line} cannot be taken back",
                "it has no down part" if step else "its file is not here",
                f"write {line}.down.sql, or choose a target of {line.version} or more",
            )
        found.append(step)
    return found


def ahead(steps: Sequence[Step], noted: Sequence[Noted]) -> list[Noted]:
    """What newer code ran here."""
    known = {step.version for step in steps}
    return [line for line in noted if line.version not in known]


def _compare(steps: Sequence[Step], noted: Sequence[Noted]) -> None:
    by_version = {step.version: step for step in steps}
    newest = max(by_version, default=0)
    for line in noted:
        step = by_version.get(line.version)
        if step is None:
            if line.version < newest or not line.whole:
                raise MigrationMissing(
                    f"step {line} ran here, but its file is gone",
                    "what ran cannot be compared with what is written",
                    "put the file back; a new step takes back what an old one did",
                )
        elif line.whole and line.checksum != step.checksum:
            raise MigrationEdited(
                f"{step.up.file.name} was edited after it ran: it ran with checksum {line.checksum[:12]}",
                f"the file has {step.checksum[:12]} now",
                "put the old text back, and write the change as a new step",
            )
