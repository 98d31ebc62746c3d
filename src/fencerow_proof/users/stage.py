"""What a database must do for the explorer, whichever it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from fencerow_proof.errors import ActorStuck
from fencerow_proof.users.performer import Performer, Tell
from fencerow_proof.users.styles import Style

Look = dict[str, list[tuple[Any, ...]]] | None
"""By invariant the rows that break it; None when nothing could be looked at just now."""


class Stage(Protocol):
    """A database on which orders are played."""

    engine: str

    def seat(self, performer: Performer) -> None:
        """From now on this performer plays the actor of its name."""

    def connect(self, name: str, style: Style, given: Callable[..., Any] | None) -> Any:
        """Open a connection whose statements are held; for async actors it may have to be awaited."""

    def run(self, script: str) -> None:
        """Run the user's SQL, outside any order."""

    def begin(self) -> None:
        """An order is about to be played."""

    def let_go(self, performer: Performer) -> None:
        """Take one step."""

    def settle(self, performers: Sequence[Performer], tell: Tell) -> None:
        """Wait until nothing moves any more.

        Raises:
            ActorStuck: something does not come to rest.
        """

    def unblock(self, performers: Sequence[Performer]) -> bool:
        """Nobody may go: let one end its wait, as the database would in the end; false when nobody can."""
        ...

    def look(self, queries: Mapping[str, str]) -> Look:
        """Ask the invariants."""
        ...

    def tables(self) -> Mapping[str, str] | None:
        """By the name of each table the one it stands for; None when texts cannot tell what statements touch."""
        ...

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """Ask anything, after an order."""
        ...

    def cut(self) -> None:
        """Break the actors' connections and undo what they have not committed."""

    def close(self) -> None: ...


def stuck(performers: Sequence[Performer], patience_s: float) -> ActorStuck:
    """Somebody did not come to rest: who, and where."""
    first = performers[0]
    return ActorStuck(
        f"actor {first.name!r} neither reached a statement nor ended within {patience_s:g} s",
        f"it is here:\n{first.where()}",
        "an actor may wait only for the database, not for time, other threads or the network",
    )
