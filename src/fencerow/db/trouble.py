"""Which errors are the database's trouble, so that a loop should wait and try again, and which are ours."""

from __future__ import annotations

import errno
import os
import sqlite3

from fencerow.db.errors import (
    DatabaseError,
    DatabaseMoved,
    OutOfResources,
    RowRefused,
    SchemaMissing,
    SchemaTampered,
    SchemaTooNew,
    SchemaTooOld,
)
from fencerow.db.text import said_of

# Neither the schema nor the place of the jobs nor a rule against a row will mend itself while we wait.
HOPELESS = (DatabaseMoved, RowRefused, SchemaMissing, SchemaTooNew, SchemaTooOld, SchemaTampered)

SHORT = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def is_trouble(error: BaseException) -> bool:
    """Whether waiting may help: the server is away, busy, full, read-only, or the connection broke."""
    if isinstance(error, HOPELESS):
        return False
    if isinstance(error, DatabaseError):
        return True
    if isinstance(error, sqlite3.OperationalError | OSError):
        return True
    import psycopg  # not before there is trouble: a program on SQLite never needs it

    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | psycopg.InternalError)


def is_shortage(error: BaseException) -> bool:
    """Whether the error itself says that this process is short of something."""
    if isinstance(error, OSError):
        return error.errno in SHORT
    # The interpreter has no better error for a thread that the system refuses.
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and "start new thread" in str(error)
    )


def is_out_of_descriptors() -> bool:
    """Whether this process can open nothing any more; drivers report that as a server that cannot be reached."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno in SHORT
    return False


def out_of_resources(what: str, error: BaseException) -> OutOfResources:
    """The error of a process that is short of something; `what`: what it could not do."""
    return OutOfResources(
        f"{what}: {said_of(error)}",
        "this process has no file descriptors, threads or memory left",
        "raise its limits (`ulimit -n`), or find what keeps files and sockets open; then start it again",
    )


def took_too_long(error: BaseException) -> bool:
    """Whether the server gave the statement up when its time was over, so that nothing of it was stored."""
    if not isinstance(error, DatabaseError) or isinstance(error, RowRefused):  # a trigger may say so of a row
        return False
    from psycopg.errors import QueryCanceled

    return isinstance(error.__cause__, QueryCanceled)
