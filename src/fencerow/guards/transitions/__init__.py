"""Declared states and moves on the user's own tables."""

from fencerow.guards.transitions.announcing import MoveEvents
from fencerow.guards.transitions.declaring import Lease, Move, Overdue, SubState
from fencerow.guards.transitions.noting import Publisher
from fencerow.guards.transitions.outcome import Moved, Reaped, Refusal, Stuck
from fencerow.guards.transitions.transitions import Transitions
from fencerow.guards.transitions.verbs import Moves

__all__ = [
    "Lease",
    "Move",
    "MoveEvents",
    "Moved",
    "Moves",
    "Overdue",
    "Publisher",
    "Reaped",
    "Refusal",
    "Stuck",
    "SubState",
    "Transitions",
]
