"""From what differs to what is wrong and where: which statement of the handler is to blame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from fencerow_proof.check.ground import Calls
from fencerow_proof.check.kinds import Action, Kind
from fencerow_proof.check.report import Fault, Finding
from fencerow_proof.check.state import (
    KEYS,
    MUTEXES,
    PUBLISHED,
    RESULT,
    SUBMITTED,
    WINDOWS,
    Difference,
)
from fencerow_proof.sql import ANYTHING

# The tables of ours behind what is compared, after the prefix that they share.
BEHIND = {
    SUBMITTED: "jobs",
    PUBLISHED: "events",
    KEYS: "once_keys",
    WINDOWS: "dedupe_windows",
    MUTEXES: "mutexes",
}
ALONE = (Fault.INSERTED_TWICE, Fault.CHANGED_TWICE, Fault.LEFT_UNDONE)


class Findings:
    """Collects findings; the same fault at the same place is one, counted."""

    def __init__(self) -> None:
        self._found: dict[tuple[Fault, str, str | None], Finding] = {}

    def add(self, finding: Finding) -> None:
        if finding.fault is Fault.RACE and any(
            (other, finding.place, finding.table) in self._found for other in ALONE
        ):
            return  # it does so without a second run beside it
        known = self._found.get((finding.fault, finding.place, finding.table))
        kept = finding if known is None else replace(known, seen=known.seen + 1)
        self._found[finding.fault, finding.place, finding.table] = kept

    def all(self) -> tuple[Finding, ...]:
        return tuple(self._found.values())

    def has(self, fault: Fault) -> bool:
        return any(finding.fault is fault for finding in self._found.values())


def fault_of(difference: Difference) -> Fault:
    """What the rows tell of how they came to be."""
    if difference.table == RESULT:
        return Fault.RESULT_DIFFERS
    if len(difference.extra) > len(difference.missing):
        return Fault.INSERTED_TWICE
    if len(difference.extra) == len(difference.missing):
        return Fault.CHANGED_TWICE
    return Fault.LEFT_UNDONE


def writers(difference: Difference, actions: Sequence[Action], jobs_table: str) -> list[Action]:
    """The actions that may have brought about a difference, the likeliest last."""
    if difference.table == RESULT:
        return list(actions)  # it rests on all that the handler did
    table = difference.table
    if table in BEHIND:
        table = f"{jobs_table.removesuffix('jobs')}{BEHIND[table]}"
    found = [action for action in actions if names_one(table, action.writes)]
    inserted = len(difference.extra) > len(difference.missing)

    def likeliness(action: Action) -> int:
        text = action.text.lower()
        does_insert = "insert" in text or text.startswith(("copy", "replace"))
        if text.startswith("delete"):
            return 0
        return 2 if does_insert == inserted else 1

    return sorted(found, key=likeliness)


def readers(actions: Sequence[Action], before: Action) -> list[Action]:
    """The actions that read before this one wrote: it may rest on what was true then."""
    found = []
    for action in actions:
        if action is before:
            break
        if action.kind is Kind.READ and action.reads:
            found.append(action)
    return found


def names_one(table: str, named: Iterable[str]) -> bool:
    """Whether one of the names in a statement means this table, which may be shown with its file or schema."""
    shown = table.lower()
    return any(
        name == ANYTHING or shown == name.lower() or shown.endswith(f".{name.lower()}") for name in named
    )


def call_differences(wanted: Calls, found: Calls) -> list[tuple[Fault, str]]:
    """Which calls were made too often, and which not at all."""
    names = {name: None for name, _ in (*wanted, *found)}
    faults = []
    for name in names:
        was, should = (
            sum(number for (each, _), number in calls.items() if each == name) for calls in (found, wanted)
        )
        if was > should:
            faults.append((Fault.CALLED_TWICE, name))
        if was < should:
            faults.append((Fault.CALL_LOST, name))
    return faults


def call_action(name: str, *traces: Sequence[Action]) -> Action | None:
    """Where a call of this name is made, in the first of the traces that has it."""
    return next(
        (action for trace in traces for action in trace if action.kind is Kind.CALL and action.text == name),
        None,
    )


def shown(action: Action) -> str:
    """An action on one line, with its place."""
    return f"{action.line}  ({action.place})"
