"""The declaration as a Mermaid state diagram, for documents and reviews."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fencerow.guards.transitions.machine import DeclaredTable, Machine

PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def diagram(declared: DeclaredTable) -> str:
    """One diagram; each sub-state stands in a box of its own, entered by the main moves that enter it."""
    lines = ["stateDiagram-v2", *(f"    {line}" for line in _lines(declared, declared.main))]
    for sub in declared.subs.values():
        lines.append(
            f'    state "{sub.name}, within {", ".join(sub.within)}" as {_alias(sub.name, 0)}_box {{'
        )
        lines += [f"        {line}" for line in _lines(declared, sub)]
        lines.append("    }")
    return "\n".join(lines) + "\n"


def _lines(declared: DeclaredTable, machine: Machine) -> Iterator[str]:
    names = {state: _name(machine, number) for number, state in enumerate(machine.states)}
    for state, name in names.items():
        if state is not None and state != name:
            yield f'state "{_safe(state)}" as {name}'
    reached = {target for move in machine.moves.values() for _, target in machine.pairs(move)}
    for state, name in names.items():
        if state is not None and state not in reached and not machine.name:
            yield f"[*] --> {name}"
    yield from _entered(declared, machine, names)
    left = set()
    for move in machine.moves.values():
        for source, target in machine.pairs(move):
            left.add(source)
            told = f"{move.name} (stale)" if move.lease is not None and source == target else move.name
            yield f"{_end(names, source)} --> {_end(names, target)} : {told}"
    for state, name in names.items():
        if state is not None and state not in left:
            yield f"{name} --> [*]"


def _entered(declared: DeclaredTable, machine: Machine, names: dict[str | None, str]) -> Iterator[str]:
    for move in declared.main.moves.values():
        if machine.name in move.enters:
            yield f"[*] --> {_end(names, move.enters[machine.name])} : {move.name}"


def _end(names: dict[str | None, str], state: str | None) -> str:
    return "[*]" if state is None else names[state]


def _name(machine: Machine, number: int) -> str:
    state = machine.states[number]
    alias = _alias(state or "none", number)
    return f"{_alias(machine.name, 0)}_{alias}" if machine.name else alias


def _alias(text: str, number: int) -> str:
    return text if PLAIN.fullmatch(text) else f"s{number}"


def _safe(text: str) -> str:
    return text.replace('"', "'")
