"""Why a move was refused, judged by the row as it stood afterwards."""

from __future__ import annotations

from fencerow.guards.transitions.asking import MoveRequest
from fencerow.guards.transitions.declaring import sources_of
from fencerow.guards.transitions.machine import DeclaredTable, Machine
from fencerow.guards.transitions.outcome import Reason, Record, Refusal


def refusal(declared: DeclaredTable, machine: Machine, asked: MoveRequest, row: Record | None) -> Refusal:
    """The reason that a caller is told."""
    if row is None:
        return Refusal(asked.id, asked.move.name, "gone")
    state = row[machine.column]
    lease = machine.leases.get(state)
    return Refusal(
        asked.id,
        asked.move.name,
        _reason(declared, machine, asked, row),
        state,
        None if lease is None else row[lease.fence],
        row,
    )


def _reason(declared: DeclaredTable, machine: Machine, asked: MoveRequest, row: Record) -> Reason:
    state, claimed = row[machine.column], asked.move.lease
    if machine.within and row[declared.main.column] not in machine.within:
        return "within"
    if claimed is not None and claimed.attempts_max is not None:
        spent = (row[claimed.attempts or claimed.fence] or 0) >= claimed.attempts_max
        if spent and (state in sources_of(asked.move) or state == asked.move.target):
            return "spent"
    if claimed is not None and state == asked.move.target:
        return "leased"
    if state not in sources_of(asked.move):
        return "state"
    lease = machine.leases.get(state)
    if lease is not None and asked.fenced and row[lease.fence] != asked.fence:
        return "fence"
    return "condition"
