"""What a declaration must fulfil before anything is sent to a database."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast

from fencerow.core.model.seconds import is_finite
from fencerow.db.queries import TOKEN
from fencerow.db.text import shown
from fencerow.guards.checked import LIFETIME_S_MAX
from fencerow.guards.names import plain_name
from fencerow.guards.transitions.declaring import Lease, Move, Overdue, SubState, listed, sources_of
from fencerow.guards.transitions.errors import MovesMisdeclared
from fencerow.guards.transitions.machine import DeclaredTable, Machine

STATE_LENGTH_MAX = 200
OURS = "fencerow_"  # how our own parameters begin
MOVE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")


def machine(
    name: str,
    column: str,
    states: Sequence[str],
    moves: Sequence[Move],
    overdue: Sequence[Overdue],
    within: tuple[str, ...] = (),
) -> Machine:
    """Put a machine together from what was declared.

    Raises:
        MovesMisdeclared: a state or a move is named twice, or badly.
    """
    plain_name(column, "a state column", MovesMisdeclared)
    for state in states:
        _state(state)
    once("state", states)
    moves = [_plain_move(move) for move in moves]
    for move in moves:
        if not MOVE_NAME.fullmatch(move.name):
            raise _wrong(f"{move.name!r} is no usable name for a move", "expected a short plain name")
    once("move", [move.name for move in moves])
    known = [_plain(state) for state in states]
    return Machine(
        name,
        column,
        (*known, None) if name else tuple(known),
        {move.name: move for move in moves},
        tuple(replace(each, state=_plain(each.state)) for each in overdue),
        tuple(map(str, map(_plain, within))),
    )


def sub_machine(sub: SubState) -> Machine:
    """Put the machine of a sub-state together."""
    if not MOVE_NAME.fullmatch(sub.name):
        raise _wrong(f"{sub.name!r} is no usable name for a sub-state", "expected a short plain name")
    return machine(sub.name, sub.column, sub.states, sub.moves, sub.overdue, listed(sub.within))


def validate(declared: DeclaredTable) -> None:
    """See that all of it fits together.

    Raises:
        MovesMisdeclared: it does not; the message says what and where.
    """
    plain_name(declared.id, "the id column", MovesMisdeclared)
    for column in (*declared.order, *([declared.version] if declared.version else [])):
        plain_name(column, "a column", MovesMisdeclared)
    once("state column", [each.column for each in declared.machines])
    for each in declared.machines:
        _Check(declared, each).all()


def once(what: str, names: Iterable[str]) -> None:
    """Refuse a name that stands there twice."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise _wrong(f"{what} {twice[0]!r} is declared twice", "each is declared once")


def where_params(move: Move) -> tuple[str, ...]:
    """The names of the parameters in a move's condition, in order of first use."""
    names = (match.group(1) for match in TOKEN.finditer(move.where))
    return tuple(dict.fromkeys(name for name in names if name))


def _plain(state: str | None) -> str | None:
    """A state as text: it may be the member of a str enum, which drivers would write by its name."""
    return None if state is None else str.__str__(state)


def _plain_move(move: Move) -> Move:
    return replace(
        move,
        sources=tuple(map(_plain, sources_of(move))),
        target=_plain(move.target),
        enters={name: _plain(state) for name, state in move.enters.items()},
    )


def _state(state: object) -> None:
    if not isinstance(state, str) or not 0 < len(state) <= STATE_LENGTH_MAX or not state.isprintable():
        raise _wrong(
            f"{state!r} is no usable state", f"expected printable text of 1 to {STATE_LENGTH_MAX} characters"
        )


def _wrong(what: str, why: str) -> MovesMisdeclared:
    return MovesMisdeclared(what, why, "correct the declaration")


class _Check:
    """One machine of a declaration."""

    def __init__(self, declared: DeclaredTable, looked_at: Machine) -> None:
        self._declared = declared
        self._machine = looked_at
        self._where = f" (sub-state {looked_at.name!r})" if looked_at.name else ""

    def all(self) -> None:
        for state in self._machine.within:
            if state not in self._declared.main.states:
                raise self._wrong(f"within names {state!r}", "expected main states")
        if self._machine.name and not self._machine.within:
            raise self._wrong("within is empty", "expected the main states in which it may move")
        for move in self._machine.moves.values():
            self._move(move)
        for overdue in self._machine.overdue:
            self._overdue(overdue)

    def _move(self, move: Move) -> None:
        self._known_states(move)
        if move.lease is not None:
            self._lease(move, move.lease)
        self._enters(move)
        self._columns(move)
        self._condition(move)

    def _enters(self, move: Move) -> None:
        if move.enters and self._machine.name:
            raise self._wrong(f"move {move.name!r} enters a sub-state", "only main moves do")
        for name, state in move.enters.items():
            sub = self._declared.subs.get(name)
            if sub is None or state not in sub.states:
                raise self._wrong(
                    f"move {move.name!r} enters {name!r} in state {state!r}",
                    "expected a declared sub-state and one of its states",
                )

    def _known_states(self, move: Move) -> None:
        if not sources_of(move):
            raise self._wrong(f"move {move.name!r} has no source", "expected at least one state")
        for state in (*sources_of(move), move.target):
            if state not in self._machine.states:
                known = ", ".join(str(state) for state in self._machine.states)
                raise self._wrong(
                    f"move {move.name!r} names the unknown state {state!r}", f"declared: {known}"
                )
        if move.lease is not None and move.target in sources_of(move):
            raise self._wrong(
                f"claim {move.name!r} has its target {move.target!r} among its sources",
                "a claimed row is taken again once its lease has run out, by itself",
            )

    def _columns(self, move: Move) -> None:
        written = [
            self._machine.column,
            *listed(move.stamps),
            *listed(move.counts),
            *listed(move.clears),
            *listed(move.sets),
            *(self._declared.subs[name].column for name in move.enters if name in self._declared.subs),
            *lease_columns(move.lease),
            *([self._declared.version] if self._declared.version else []),
        ]
        for column in written:
            plain_name(column, f"a column of move {move.name!r}", MovesMisdeclared)
        once(f"in move {move.name!r} column", written)
        self._leaves_alone(move)

    def _leaves_alone(self, move: Move) -> None:
        """What a caller or a stray clear must never write: ids, states, fences."""
        kept = {self._declared.id, *(each.column for each in self._declared.machines)}
        kept |= {lease.fence for each in self._declared.machines for lease in each.leases.values()}
        renewed = listed(move.lease.sets) if move.lease else ()
        once(f"in the lease of {move.name!r} column", [*lease_columns(move.lease), *renewed])
        touched = (
            *listed(move.stamps),
            *listed(move.counts),
            *listed(move.clears),
            *listed(move.sets),
            *renewed,
        )
        for column in touched:
            plain_name(column, f"a column of move {move.name!r}", MovesMisdeclared)
            if column in kept:
                raise self._wrong(
                    f"move {move.name!r} writes {column!r}",
                    "ids, state columns and fences are written by the moves' own rules alone",
                )

    def _condition(self, move: Move) -> None:
        if ";" in move.where:
            raise self._wrong(f"the condition of move {move.name!r} contains ;", "expected one SQL condition")
        for name in where_params(move):
            if name.startswith(OURS):
                raise self._wrong(
                    f"the condition of move {move.name!r} uses :{name}", f"names with {OURS} are taken"
                )

    def _lease(self, move: Move, lease: Lease) -> None:
        if not _is_length(lease.lease_s):
            raise self._wrong(
                f"the lease of {move.name!r} is {shown(lease.lease_s)} s",
                "expected more than 0 s, and at most ten years",
            )
        if (lease.since is None) == (lease.until is None):
            raise self._wrong(f"the lease of {move.name!r} has no one column", "expected since or until")
        if move.target is None:
            raise self._wrong(f"claim {move.name!r} leads to None", "a leased state has a name")
        others = [each for each in self._machine.moves.values() if each.lease and each.target == move.target]
        if any(each.lease != lease for each in others):
            raise self._wrong(
                f"two claims lead to {move.target!r} with different leases", "expected one lease"
            )
        some = lease.attempts_max is None or lease.attempts_max >= 1
        if not some or (lease.attempts_max is None) != (lease.when_spent is None):
            raise self._wrong(
                f"claim {move.name!r} has attempts_max={lease.attempts_max} and when_spent={lease.when_spent!r}",
                "expected at least 1 with the move that the reaper makes then, or neither: rows would stay for ever",
            )
        self._reaped(lease.when_stale, (move.target,), move)
        self._reaped(lease.when_spent, (move.target, *sources_of(move)), move)

    def _reaped(self, name: str | None, states: tuple[str | None, ...], claim: Move) -> None:
        """A move of the reaper: it exists, needs nothing from a caller, and reaches every row it is for."""
        if name is None:
            return
        move = self._by_reaper(name)
        missing = [state for state in states if state not in sources_of(move)]
        if missing:
            raise self._wrong(
                f"the reaper makes {name!r} for claim {claim.name!r}, but it does not start from {missing[0]!r}",
                "rows in that state would stay for ever",
            )

    def _by_reaper(self, name: str) -> Move:
        move = self._machine.moves.get(name)
        if move is None or move.lease is not None or where_params(move):
            raise self._wrong(
                f"the reaper is to make the move {name!r}",
                "expected a declared move that is no claim and has no parameters",
            )
        return move

    def _overdue(self, overdue: Overdue) -> None:
        usable = _is_length(overdue.after_s) and listed(overdue.since)
        if overdue.state not in self._machine.states or not usable:
            raise self._wrong(
                f"overdue names state {overdue.state!r}, since {overdue.since!r}, after {shown(overdue.after_s)} s",
                "expected a declared state, a column that says since when, and more than 0 s, at most ten years",
            )
        for column in listed(overdue.since):
            plain_name(column, "a column of overdue", MovesMisdeclared)
        if overdue.move is None:
            return
        if overdue.state not in sources_of(self._by_reaper(overdue.move)):
            raise self._wrong(
                f"overdue makes {overdue.move!r} from {overdue.state!r}", "it does not start from there"
            )
        if overdue.state in self._machine.leases:
            raise self._wrong(
                f"overdue makes {overdue.move!r} from the leased state {overdue.state!r}",
                "that could end an attempt whose lease was renewed: use the lease's when_stale",
            )

    def _wrong(self, what: str, why: str) -> MovesMisdeclared:
        return _wrong(what + self._where, why)


def _is_length(seconds: object) -> bool:
    """Whether it is a length of time that the database can add to an instant."""
    return is_finite(seconds) and 0 < cast(float, seconds) <= LIFETIME_S_MAX


def lease_columns(lease: Lease | None) -> tuple[str, ...]:
    """The columns that a claim writes for its lease."""
    if lease is None:
        return ()
    found = (lease.fence, lease.since or lease.until or "", lease.attempts or lease.fence)
    return tuple(dict.fromkeys(found))
