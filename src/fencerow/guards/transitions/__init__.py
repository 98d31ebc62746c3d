"""Declared states and moves on the user's own tables.

The guide: docs/guide/transitions.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.guards.transitions.announcing import MoveEvents
    from fencerow.guards.transitions.declaring import Lease, Move, Overdue, SubState
    from fencerow.guards.transitions.noting import Publisher
    from fencerow.guards.transitions.outcome import Moved, Reaped, Refusal, Stuck
    from fencerow.guards.transitions.transitions import Transitions
    from fencerow.guards.transitions.verbs import Moves
else:
    __getattr__ = lazily(
        __name__,
        {
            "MoveEvents": "fencerow.guards.transitions.announcing",
            "Lease": "fencerow.guards.transitions.declaring",
            "Move": "fencerow.guards.transitions.declaring",
            "Overdue": "fencerow.guards.transitions.declaring",
            "SubState": "fencerow.guards.transitions.declaring",
            "Publisher": "fencerow.guards.transitions.noting",
            "Moved": "fencerow.guards.transitions.outcome",
            "Reaped": "fencerow.guards.transitions.outcome",
            "Refusal": "fencerow.guards.transitions.outcome",
            "Stuck": "fencerow.guards.transitions.outcome",
            "Transitions": "fencerow.guards.transitions.transitions",
            "Moves": "fencerow.guards.transitions.verbs",
        },
    )

__all__ = [
    "MoveEvents",
    "Lease",
    "Move",
    "Overdue",
    "SubState",
    "Publisher",
    "Moved",
    "Reaped",
    "Refusal",
    "Stuck",
    "Transitions",
    "Moves",
]
