"""An action of a run: a statement, a declared outside call, or something that nobody declared."""

from __future__ import annotations

import msgspec

from fencerow_proof.sql import Kind

__all__ = ["OUTSIDE", "UNDECLARED", "Kind", "Action"]

UNDECLARED = frozenset((Kind.FILE, Kind.SOCKET, Kind.PROCESS))
OUTSIDE = UNDECLARED | {Kind.CALL}


class Action(msgspec.Struct, frozen=True):
    """One action as the handler's process met it.

    `text` is the statement, or what is called, written or reached; `place` is `file:line` of the user's code.
    `session` tells connections of one run apart, `backend` is the server's process. `key` is the idempotency key of
    an outside call.
    """

    number: int
    kind: Kind
    text: str
    place: str
    driver: str
    session: int = 0
    backend: int | None = None
    key: str | None = None
    reads: list[str] = []
    writes: list[str] = []

    @property
    def is_statement(self) -> bool:
        return self.kind not in OUTSIDE

    @property
    def line(self) -> str:
        """The text on one line, not too long."""
        text = " ".join(self.text.split())
        return text if len(text) <= 120 else f"{text[:117]}..."
