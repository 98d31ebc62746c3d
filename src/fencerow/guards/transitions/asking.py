"""What a caller asks for, checked against the declaration before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fencerow.guards.transitions.declaring import Lease, Move, listed, sources_of
from fencerow.guards.transitions.errors import InvalidMove
from fencerow.guards.transitions.machine import Machine
from fencerow.guards.transitions.validating import where_params


@dataclass(frozen=True, slots=True)
class MoveRequest:
    """One move with everything that its statement is given. `columns` are those that the caller sets, in order."""

    move: Move
    id: Any
    fence: int | None
    columns: tuple[str, ...]
    params: Mapping[str, Any]

    @property
    def fenced(self) -> bool:
        return self.fence is not None


def ask(
    machine: Machine,
    name: str,
    row_id: Any,
    *,
    fence: int | None,
    values: Mapping[str, Any] | None,
    params: Mapping[str, Any] | None,
) -> MoveRequest:
    """A move of one row.

    Raises:
        UnknownMove: no move has that name.
        InvalidMove: a fence or a parameter is missing, or something is given that the move does not take.
    """
    move = machine.move(name)
    leased = [source for source in sources_of(move) if source in machine.leases]
    if leased and fence is None and not move.by_anyone:
        raise InvalidMove(
            f"move {name!r} starts from the leased state {leased[0]!r} and names no fence",
            "only the holder of the row may make it",
            f"pass fence= with what the claim returned in {machine.leases[leased[0]].fence!r}",
        )
    if fence is not None and not leased:
        raise InvalidMove(
            f"move {name!r} was given the fence {fence!r}",
            "it does not start from a leased state, so there is no fence to compare",
            "leave it out",
        )
    return _asked(move, row_id, _whole(fence), values, listed(move.sets), params, where_params(move))


def ask_many(
    machine: Machine, name: str, *, values: Mapping[str, Any] | None, params: Mapping[str, Any] | None
) -> MoveRequest:
    """A move of whatever rows may make it.

    Raises:
        UnknownMove: no move has that name. InvalidMove: as for one row, or its rows are each under a fence.
    """
    move = machine.move(name)
    if not move.by_anyone and any(source in machine.leases for source in sources_of(move)):
        raise InvalidMove(
            f"move {name!r} starts from a leased state",
            "each row has a fence of its own",
            "move one by one",
        )
    return _asked(move, None, None, values, listed(move.sets), params, where_params(move))


def ask_renewal(
    machine: Machine, claim: str, row_id: Any, *, fence: int, values: Mapping[str, Any] | None
) -> MoveRequest:
    """A renewal of what that claim has taken.

    Raises:
        UnknownMove: no claim has that name. InvalidMove: a column that a renewal may not set.
    """
    move, lease = machine.claim(claim)
    return _asked(move, row_id, _whole(fence), values, _renewable(lease), None, ())


def _renewable(lease: Lease) -> tuple[str, ...]:
    return listed(lease.sets)


def _asked(
    move: Move,
    row_id: Any,
    fence: int | None,
    values: Mapping[str, Any] | None,
    settable: tuple[str, ...],
    params: Mapping[str, Any] | None,
    wanted: tuple[str, ...],
) -> MoveRequest:
    values, params = dict(values or {}), dict(params or {})
    strange = [column for column in values if column not in settable]
    if strange:
        raise InvalidMove(
            f"move {move.name!r} may not set {strange[0]!r}",
            f"it may set {', '.join(settable) or 'nothing'}",
            "correct the call, or declare the column in `sets`",
        )
    if set(params) != set(wanted):
        raise InvalidMove(
            f"move {move.name!r} was given the parameters {', '.join(sorted(params)) or 'none'}",
            f"its condition takes {', '.join(sorted(wanted)) or 'none'}",
            "pass exactly these as params=",
        )
    columns = tuple(sorted(values))
    given = {f"fencerow_set_{number}": values[column] for number, column in enumerate(columns)}
    return MoveRequest(
        move, row_id, fence, columns, {**params, **given, "fencerow_id": row_id, "fencerow_fence": fence}
    )


def _whole(fence: Any) -> int | None:
    if fence is None or (isinstance(fence, int) and not isinstance(fence, bool)):
        return fence
    raise InvalidMove(
        f"the fence is {fence!r}", "expected the whole number that the claim returned", "pass that"
    )
