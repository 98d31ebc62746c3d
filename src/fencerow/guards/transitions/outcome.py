"""What moves come to: who was moved, who was not and why, who is stuck."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Record = dict[str, Any]
"""A row of the user's table, by the names of its columns, with the values that the driver gives."""

Reason = Literal["gone", "state", "fence", "leased", "spent", "within", "condition"]


@dataclass(frozen=True, slots=True)
class Moved:
    """One move that happened: what a history row and an event say. `sub` is the name of the sub-state, or None."""

    table: str
    id: Any
    sub: str | None
    move: str
    source: str | None
    target: str | None
    fence: int | None
    row: Record


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a move did not happen, read after it was refused; the row may have been moved in between.

    `reason`: "gone" (there is no such row), "state" (its state is not among the sources), "fence" (it belongs to
    a later attempt), "leased" (its lease runs), "spent" (it was claimed as often as it may be), "within" (its main
    state does not allow it), or "condition": everything else fits now, so the move's own `where` did not
    hold, or somebody changed the row in between; then try again.
    """

    id: Any
    move: str
    reason: Reason
    state: str | None = None
    fence: int | None = None
    row: Record | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Stuck:
    """A row that has been in a state for too long. `age_s` is None if the row does not say since when."""

    id: Any
    sub: str | None
    state: str | None
    age_s: float | None
    row: Record = field(repr=False)


@dataclass(frozen=True, slots=True)
class Reaped:
    """What one sweep of the reaper moved, by the name of the move; `more`: there may be more to do at once."""

    moved: dict[str, list[Record]]
    more: bool
