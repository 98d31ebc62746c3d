"""What stands around a rollback: the error that led to it is the one that callers learn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fencerow.db.text import said_of


@contextmanager
def rolling_back(error: BaseException) -> Iterator[None]:
    """Around the rollback that `error` led to: a second error says less, and is noted at the first."""
    try:
        yield
    except Exception as other:
        if other is not error:
            error.add_note(f"rolling back also failed: {said_of(other)}")
