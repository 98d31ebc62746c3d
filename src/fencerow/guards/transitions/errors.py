"""What can be wrong with declared moves, and with the table they are made on (70x)."""

from __future__ import annotations

from fencerow.db.errors.base import FencerowError


class MovesMisdeclared(FencerowError):
    """Moves were declared in a way that cannot work: correct the declaration. Nothing was read or written."""

    code = "FR-701"


class UnknownMove(FencerowError):
    """No move, or no sub-state, of that name is declared; the closest names are in `why`. Nothing was changed."""

    code = "FR-702"


class WrongTable(FencerowError):
    """The table is not what the moves were declared for: a column is missing, or of a type that does not fit."""

    code = "FR-703"


class InvalidMove(FencerowError):
    """The call of a move lacks something or has too much: a fence, a parameter, a column. Nothing was changed."""

    code = "FR-704"
