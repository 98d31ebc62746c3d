"""What PostgreSQL's error codes mean to whoever lent us a connection, under every driver."""

from __future__ import annotations

import psycopg

from fencerow.core.db.adapters.frame import failed
from fencerow.core.db.faults import LOST_STATES, first_line
from fencerow.core.db.faults import fault as known_fault
from fencerow.core.errors import FencerowError, ReadOnly, RetryTransaction

RETRY = {
    "40001": "a concurrent transaction committed what yours cannot see",
    "40P01": "two transactions waited for each other",
}
FAILED = "25P02"
READ_ONLY = "25006"


def sqlstate(error: BaseException) -> str | None:
    """The code that the server gave, however the driver calls it."""
    for holder in (error, getattr(error, "orig", None), getattr(error, "__cause__", None)):
        for name in ("sqlstate", "pgcode"):
            state = getattr(holder, name, None)
            if isinstance(state, str):
                return state
    return None


def is_lost(error: BaseException) -> bool:
    """Whether the server said with this error that it ends the connection."""
    return sqlstate(error) in LOST_STATES


def fault(error: BaseException, kind: str) -> FencerowError | None:
    """Which of our errors it is; None for integrity errors and all else that is the caller's to judge."""
    state = sqlstate(error)
    if state is None:
        return None
    text = first_line(error)
    if state in RETRY:
        return RetryTransaction(
            f"your transaction lost to a concurrent one ({RETRY[state]})",
            text,
            "roll it back and run it again",
        )
    if state == FAILED:
        return failed(kind)
    if state == READ_ONLY:
        return ReadOnly(
            "your transaction may not write",
            f"it was declared READ ONLY, or the server is a standby ({text})",
            "roll it back, and lend one that may write, on the primary",
        )
    try:
        return known_fault(psycopg.errors.lookup(state)(text))
    except KeyError:
        return None  # a code that psycopg has no class for
