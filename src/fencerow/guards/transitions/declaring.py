"""What a user declares: moves, the leases of claims, what counts as overdue, and sub-states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fencerow.core.model.seconds import Seconds, keep_in_seconds

Names = str | Sequence[str]
"""One name, or several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """How long a claimed row belongs to its claimer, and which columns say so.

    Give `since` (a column stamped by claim and renewal, judged by its age) or `until` (one that holds the
    lease's end). `fence` is a column with a whole number that each claim raises by one. A later move names
    it, and gets None if somebody else has claimed the row since. It must never get smaller, so no move may
    set it.

    With `attempts_max`, a row that was claimed so often is not claimed again; the reaper makes the move
    `when_spent` with it. `attempts` is the column that counts, if that is not the fence. A row whose lease
    ran out can be claimed again at once; the reaper may also make the move `when_stale` with it. `sets` are
    columns that a renewal may write, such as progress.
    """

    lease_s: float
    fence: str
    since: str | None = None
    until: str | None = None
    attempts: str | None = None
    attempts_max: int | None = None
    when_stale: str | None = None
    when_spent: str | None = None
    sets: Names = ()

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            lease_s: Seconds,
            fence: str,
            since: str | None = None,
            until: str | None = None,
            attempts: str | None = None,
            attempts_max: int | None = None,
            when_stale: str | None = None,
            when_spent: str | None = None,
            sets: Names = (),
        ) -> None: ...

    def __post_init__(self) -> None:
        keep_in_seconds(self, "lease_s")


@dataclass(frozen=True, slots=True)
class Move:
    """One legal move: from which states to which, and what else it writes.

    `stamps` are columns set to the database's now, `counts` whole numbers raised by one, `clears` become NULL,
    `sets` are those that the caller may give values for. `where` is a further condition as SQL, with `:params`
    that the caller gives. `enters` puts sub-states into a state in the same UPDATE.

    With a `lease` the move is a claim, and its target is a leased state. Moves out of a leased state must
    name the fence, unless they have `by_anyone` (for example a cancel by a person).
    """

    name: str
    sources: str | Sequence[str | None] | None
    target: str | None
    stamps: Names = ()
    counts: Names = ()
    clears: Names = ()
    sets: Names = ()
    where: str = ""
    enters: Mapping[str, str | None] = field(default_factory=dict[str, "str | None"])
    lease: Lease | None = None
    by_anyone: bool = False


@dataclass(frozen=True, slots=True)
class Overdue:
    """How long a row may stay in a state: what `find_stuck` looks for.

    `since` is the column that says when the row came into the state; of several columns the first that is not
    NULL counts. With a `move` the reaper makes that move with overdue rows.
    """

    state: str | None
    since: Names
    after_s: float
    move: str | None = None

    if TYPE_CHECKING:

        def __init__(
            self, state: str | None, since: Names, after_s: Seconds, move: str | None = None
        ) -> None: ...

    def __post_init__(self) -> None:
        keep_in_seconds(self, "after_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubState:
    """A second state of a row, in a column of its own that is NULL before the first move.

    Its moves are legal only while the row's main state is one of `within`. A row enters it by a move of the
    main state (see `Move.enters`), or by a move of its own from None.
    """

    name: str
    column: str
    states: Sequence[str]
    moves: Sequence[Move]
    within: Names
    overdue: Sequence[Overdue] = ()


def listed(names: Names) -> tuple[str, ...]:
    """One name or several, as several."""
    return (names,) if isinstance(names, str) else tuple(names)


def sources_of(move: Move) -> tuple[str | None, ...]:
    """The states that a move starts from."""
    return (move.sources,) if move.sources is None or isinstance(move.sources, str) else tuple(move.sources)
