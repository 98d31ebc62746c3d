"""What an API token lets its bearer do, and where. Pure: it asks nobody."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Scope(StrEnum):
    """What a token lets its bearer do. `operate` includes `signal`, `read` and `cancel`; `admin` includes all."""

    SUBMIT = "submit"
    SIGNAL = "signal"
    READ = "read"
    CANCEL = "cancel"
    OPERATE = "operate"
    ADMIN = "admin"


# Whoever pauses and revives must see what he changes, could cancel the work of others by a pause as well, and answers
# in the dashboard what jobs ask. Who submits does not answer: that may be the approval of this very job.
INCLUDED = {
    Scope.OPERATE: frozenset({Scope.SIGNAL, Scope.READ, Scope.CANCEL}),
    Scope.ADMIN: frozenset(Scope),
}


class Grant(msgspec.Struct, frozen=True):
    """What the bearer of one token may do: the scopes it was given, in these queues (None: in all)."""

    id: str
    name: str
    scopes: frozenset[Scope]
    queues: frozenset[str] | None = None

    def may(self, scope: Scope) -> bool:
        """Whether this scope was given, or is included in one that was."""
        return scope in self.scopes or any(scope in INCLUDED.get(given, ()) for given in self.scopes)

    def reaches(self, queue: str) -> bool:
        """Whether it counts for what is in this queue."""
        return self.queues is None or queue in self.queues

    @property
    def reaches_all(self) -> bool:
        """Whether it counts for what is in any queue, and for what belongs to none, as limits and workers."""
        return self.queues is None
