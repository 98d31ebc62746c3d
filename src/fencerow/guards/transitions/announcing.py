"""`MoveEvents`: each move of a table as an event, published by the transaction that makes it."""

from __future__ import annotations

from fencerow.core.answering import answer
from fencerow.db.run import Steps
from fencerow.events.outbox import WAKE_UP, NewEvent, append
from fencerow.events.topics import check_own_topic
from fencerow.guards.transitions.declaring import Names, listed
from fencerow.guards.transitions.outcome import Moved


@answer
class MoveEvents:
    """A publisher for `Transitions`: a move of `documents` is the event `documents.<move>`, keyed by the row's id.

    A move of a sub-state is the event `documents.<sub-state>.<move>`. Events of one row stay in order. The
    data are the row's id, the move, the states, the fence, and the `columns` named here, whose values JSON
    must be able to hold. `moves` are the moves to publish, by default all; write a move of a sub-state as
    `boxes.claim`.

    Raises:
        InvalidTopic: the topic cannot be used.
    """

    def __init__(self, topic: str, *, moves: Names | None = None, columns: Names = ()) -> None:
        self._topic = check_own_topic(topic)
        self._moves = None if moves is None else frozenset(listed(moves))
        self._columns = listed(columns)

    def publish(self, moved: Moved) -> Steps[object]:
        """The statement that writes the event."""
        name = moved.move if moved.sub is None else f"{moved.sub}.{moved.move}"
        if self._moves is not None and name not in self._moves:
            return None
        data = {
            "id": moved.id,
            "move": name,
            "source": moved.source,
            "target": moved.target,
            "fence": moved.fence,
            **{column: moved.row[column] for column in self._columns},
        }
        event = NewEvent(f"{self._topic}.{name}", data, key=str(moved.id))
        return (yield from append([event]).steps())

    def wake_ups(self) -> list[str]:
        """The wake-ups for the readers of events."""
        return [WAKE_UP]
