"""What a wing knows of the gates where jobs wait for their turn. The core keeps at which gate a job waits, and no more.

Said once, when the package is imported; see `core/wing.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fencerow.core.db.run import Steps
    from fencerow.core.model.job import NewJob


class Gating(Protocol):
    """Knows the gates, and who is to be told of them."""

    def come(self, jobs: Sequence[NewJob]) -> Steps[None]:
        """Say that new jobs come to their gates, before their insert and in its transaction.

        Raises:
            FencerowError: one of them may not come there. Nothing was written.
        """
        ...

    def look_again(self, gates: Collection[str]) -> Steps[None]:
        """Say that these gates are to be looked at: somebody left them, or comes at another time."""
        ...

    def gates_of(self, exclusive: str | None, limits: str | None) -> tuple[str, ...]:
        """All gates of a job with this key, and with limits of which this is the JSON."""
        ...

    def refuse_unknown(self, limits: Sequence[str]) -> Steps[None]:
        """Look whether jobs may name these limits.

        Raises:
            FencerowError: one of them is not defined.
        """
        ...


_make: Callable[[], Gating] | None = None
_gating: Gating | None = None


def gate_by(make: Callable[[], Gating]) -> None:
    """From now on there is this, made by the first who asks for it."""
    global _make, _gating
    _make, _gating = make, None


def gating() -> Gating:
    """What there is. Only jobs that wait at gates need it, and a wing brought the options that send them there."""
    global _gating
    if _gating is None:
        assert _make is not None, "no wing gives turns"
        _gating = _make()
    return _gating
