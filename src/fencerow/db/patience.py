"""Ends a statement that waits too long. The client keeps the time: a server setting would not survive a pooler."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from psycopg import Connection
from psycopg import errors as pg

from fencerow.errors import Busy, Unavailable


@contextmanager
def patience(connection: Connection[Any], patience_s: float | None) -> Iterator[None]:
    """Cancel what runs on the connection when it takes longer; None: never.

    Raises:
        Busy: it was cancelled. What the statement committed on its way, such as a first half, stays.
    """
    if patience_s is None:
        yield
        return
    timer = threading.Timer(patience_s, connection.cancel_safe)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Unavailable as error:
        if isinstance(error.__cause__, pg.QueryCanceled):
            raise _impatient(patience_s) from error
        raise
    finally:
        timer.cancel()
        timer.join()  # a cancel that came late would hit the connection's next user


@asynccontextmanager
async def apatience(patience_s: float | None) -> AsyncIterator[None]:
    """`patience` for async code: the driver cancels the statement when its task is."""
    if patience_s is None:
        yield
        return
    try:
        async with asyncio.timeout(patience_s):
            yield
    except TimeoutError as error:
        raise _impatient(patience_s) from error


def _impatient(patience_s: float | None) -> Busy:
    return Busy(
        f"a statement waited longer than {patience_s:g} s and was cancelled",
        "others hold locks or snapshots that it must wait for",
        "it is tried again; `fencerow doctor` shows the oldest snapshots",
    )
