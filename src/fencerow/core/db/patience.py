"""What it means when a statement that waits for strangers was cancelled because it took too long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from psycopg import errors as pg

from fencerow.core.errors import Busy, Unavailable


@contextmanager
def impatient(patience_s: float | None) -> Iterator[None]:
    """Around an operation with a patience of its own; the engine's watchdog cancels it.

    Raises:
        Busy: it was cancelled. What the statement committed on its way, such as a first half, stays.
    """
    try:
        yield
    except Unavailable as error:
        if patience_s is None or not isinstance(error.__cause__, pg.QueryCanceled):
            raise
        raise Busy(
            f"a statement waited longer than {patience_s:g} s and was cancelled",
            "others hold locks or snapshots that it must wait for",
            "it is tried again; `fencerow doctor` shows the oldest snapshots",
        ) from error
