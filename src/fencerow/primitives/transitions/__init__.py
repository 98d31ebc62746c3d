"""Declared states and moves on the user's own tables."""

from fencerow.primitives.transitions.announcing import MoveEvents
from fencerow.primitives.transitions.declaring import Lease, Move, Overdue, SubState
from fencerow.primitives.transitions.noting import Publisher
from fencerow.primitives.transitions.outcome import Moved, Reaped, Refusal, Stuck
from fencerow.primitives.transitions.transitions import Transitions
from fencerow.primitives.transitions.verbs import Moves

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
