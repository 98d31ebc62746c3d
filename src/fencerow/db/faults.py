"""Which PostgreSQL errors mean what to a caller."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors as pg

from fencerow.db.errors import (
    Busy,
    DatabaseError,
    DatabaseFilling,
    FencerowError,
    NotPermitted,
    ReadOnly,
    RowRefused,
    SchemaMissing,
    SchemaTooOld,
    StorageFull,
    Unavailable,
)

# As a trigger says it that keeps a database closed until the jobs of another are there.
FILLING_STATE = "FR993"

# The whole unit was rolled back for certain and may simply run again.
CONTENTION = (pg.SerializationFailure, pg.DeadlockDetected, pg.LockNotAvailable)

# Its partitions are ours to make; a user's own partitioned table has another name.
FINISHED = "finished_jobs"

# 08P01 is also what PgBouncer says when it lost the server behind it, or found none in time. 25P03 and 25P04 are the
# server's limits for a transaction, which end the session; for psycopg they are of another class than the rest.
LOST_STATES = frozenset(
    {"57P01", "57P02", "57P03", "57P05", "08000", "08003", "08006", "08P01", "25P03", "25P04"}
)


def connection_lost(error: BaseException) -> bool:
    """Whether the connection is gone, so that what was under way is in doubt."""
    if _is_panic(error):
        return True
    if isinstance(error, psycopg.Error) and error.sqlstate is not None:
        return error.sqlstate in LOST_STATES
    # An InternalError without a state is psycopg's own: it was told what it cannot make sense of.
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | psycopg.InternalError)


def ended_idle(error: BaseException) -> bool:
    """Whether the server ended a transaction that was silent: it never saw what was sent next, a COMMIT included."""
    return isinstance(error, pg.IdleInTransactionSessionTimeout)


def never_began(error: BaseException) -> bool:
    """Whether the server ended a session that was silent, outside of a transaction: it never saw what was sent next."""
    return isinstance(error, pg.IdleSessionTimeout)


def _is_panic(error: BaseException) -> bool:
    """Whether the server went down by this error. A commit may be on its disk already: only recovery decides."""
    return isinstance(error, psycopg.Error) and error.diag.severity_nonlocalized == "PANIC"


# The functions of the server that judge a row by the policies of its table, that end a statement when it was cancelled
# or took too long, and that refuse a role what it lacks a privilege for.
ROW_SECURITY, CANCEL, PRIVILEGES = "ExecWithCheckOptions", "ProcessInterrupts", "aclcheck_error"
ARGUMENTS = re.compile(r"\w\([^)]")  # of a function, as the server names it where an error was raised

# These speak of our tables only when a statement of ours met them; a caller's own table may be missing too.
ABOUT_TABLES = (
    pg.UndefinedTable,
    pg.InvalidSchemaName,
    pg.UndefinedColumn,
    pg.UndefinedFunction,
    pg.InsufficientPrivilege,
    pg.ObjectNotInPrerequisiteState,
    pg.QueryCanceled,
)


@contextmanager
def translated(*, around_user_code: bool = False, patience_s: float | None = None) -> Iterator[None]:
    """Turn what an operator can do something about into our errors; leave all others as they are.

    `patience_s` is that of an operation which has one of its own: when it is over, the engine's watchdog cancels the
    statement, and that is `Busy`. Where it has no end, only a limit of the server's can have cancelled it. What the
    statement committed on its way, such as a first half, stays.
    """
    try:
        yield
    except psycopg.Error as error:
        if around_user_code and isinstance(error, ABOUT_TABLES):
            raise
        known = as_ours(error)
        if known is error:
            raise
        if patience_s is not None and math.isfinite(patience_s) and isinstance(error, pg.QueryCanceled):
            raise _impatient(patience_s) from known
        raise known from error


def as_ours(error: psycopg.Error) -> Exception:
    """What `translated` raises in its place."""
    known = fault(error)
    if known is None:
        return error
    known.__cause__ = error
    return known


def _impatient(patience_s: float) -> Busy:
    return Busy(
        f"a statement waited longer than {patience_s:g} s and was cancelled",
        "others hold locks or snapshots that it must wait for",
        "it is tried again; `fencerow doctor` shows the oldest snapshots",
    )


def fault(error: psycopg.Error) -> FencerowError | None:
    """Which of our errors a PostgreSQL error is, if any. Lost connections are judged by whoever sent the statement."""
    if _is_panic(error):
        return None
    text = first_line(error)
    if error.sqlstate == FILLING_STATE:
        return DatabaseFilling(
            "this database takes nothing yet", text, "repeat later; `fencerow doctor` says how far it is"
        )
    match error:
        case pg.UndefinedTable() | pg.InvalidSchemaName():
            return SchemaMissing("this database has no Fencerow tables", text, "run `fencerow migrate`")
        case pg.UndefinedColumn() | pg.UndefinedFunction():
            return SchemaTooOld(
                "this database's Fencerow tables are older than this code", text, "run `fencerow migrate`"
            )
        case pg.ReadOnlySqlTransaction():
            return ReadOnly(
                "the database is read-only", text, "connect to the primary (target_session_attrs=read-write)"
            )
        case pg.DiskFull():
            return StorageFull(
                "the database's disk is full", text, "make room on the server; nothing was stored"
            )
        case pg.TooManyConnections():
            return Unavailable(
                "PostgreSQL has no free connection", text, "lower FENCEROW_POOL_MAX or use a pooler"
            )
        case pg.InsufficientPrivilege():
            return not_permitted(error)
        case pg.ObjectNotInPrerequisiteState() | pg.QueryCanceled() if _is_of_row(error):
            return _row_refused(error)
        case pg.CheckViolation() if error.diag.constraint_name is None and error.diag.table_name == FINISHED:
            return Busy(
                "a finished job found no table of its period",
                text,
                "somebody removed it by hand; maintenance of a worker whose role owns the tables mends that",
            )
        case pg.ObjectNotInPrerequisiteState():
            return Busy("somebody else is changing a table", text, "look again, then repeat it if needed")
        case pg.QueryCanceled():
            return Unavailable(
                "the statement was cancelled by a timeout", text, "nothing was stored; repeat it"
            )
    return None


def not_permitted(error: psycopg.Error, role: str | None = None) -> DatabaseError:
    """What a role is told that lacks a privilege: the server says on what, and not of whom. It refuses with the same
    state what a rule of the database has against a row."""
    if _is_of_row(error):
        return _row_refused(error)
    who = "this role" if role is None else f"the role {ascii(role)[1:-1]}"
    return NotPermitted(
        f"{who} may not do that",
        first_line(error),
        "`fencerow doctor` says which privileges it lacks, and `fencerow sql --grants` prints what to grant",
    )


def _is_of_row(error: psycopg.Error) -> bool:
    """Whether it is of the row, and not of the whole statement: row security or a function refused it.

    A function that runs for a row, of a trigger mostly, is the context of what is raised in it. Privileges of the
    statement are looked at before, where there is no context. The server's own cancel may meet a function, too. A
    function with arguments may be ours, which runs for a statement: a privilege that it misses is the role's to have.
    """
    raised_in, context = error.diag.source_function, error.diag.context
    if raised_in == ROW_SECURITY:
        return True
    if context is None or raised_in == CANCEL:
        return False
    *_, called_first = context.splitlines() or [""]
    return raised_in != PRIVILEGES or ARGUMENTS.search(called_first) is None


def _row_refused(error: psycopg.Error) -> RowRefused:
    return RowRefused(
        "a rule of this database refused a row",
        first_line(error),
        "correct the job, or the trigger or policy of Fencerow's tables that says so",
    )


def first_line(error: BaseException) -> str:
    """The first line of a server's message: the rest repeats the statement."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
