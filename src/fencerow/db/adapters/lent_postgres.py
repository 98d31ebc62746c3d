"""What all ways to a lent PostgreSQL connection have in common, under every driver.

**Parameters.** Drivers that ask the server for the types of parameters (asyncpg) would take a text that stands
in CAST(:jobs AS json) through the user's json codec, which encodes it twice, and want a UUID or an
exact integer where we pass plain values. `typed` first casts each parameter to the type of its value, so that its type
never depends on where it stands.

**Errors** are told apart by the server's code, however the driver calls it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.pq import DiagnosticField

from fencerow.db.adapters.frame import (
    INSIDE,
    NOTHING,
    WHOLE,
    ConnectionStanding,
    Frame,
    Lent,
    Plan,
    SentText,
    failed,
)
from fencerow.db.errors import FencerowError, ReadOnly, RetryTransaction, UnusableConnection
from fencerow.db.faults import LOST_STATES, first_line
from fencerow.db.faults import fault as known_fault
from fencerow.db.known_connections import KnownConnections, KnownDatabase
from fencerow.db.left_out import left_out
from fencerow.db.queries import translated
from fencerow.db.run import Operation, Param, Rows, Statement

# Under these a transaction sees only the past.
FROZEN = ("repeatable read", "serializable")
RETRY = {
    "40001": "a concurrent transaction committed what yours cannot see",
    "40P01": "two transactions waited for each other",
}
FAILED = "25P02"
READ_ONLY = "25006"
UTF8 = ("utf8", "unicode")  # two names of one


class LentPostgres(Lent):
    """Refuses a statement that must see what was committed until now, in whatever operation it stands.

    Such is the look of a repeated submit, or of one under an id of the caller's own: the job's live row would be gone,
    so the insert would meet nothing, and its finished row would not be visible yet: it would run a second time.
    Submits under a key alone need no such care: the end of a job stamps its key, and meeting a key changed since the
    snapshot is a serialization failure.
    """

    kind: str
    known: KnownConnections

    @abstractmethod
    def driver(self) -> object:
        """The driver's own connection: what is asked once where it leads."""

    def frame(self, operation: Operation[Any], standing: ConnectionStanding) -> Frame:
        if standing is ConnectionStanding.OPEN:
            return INSIDE
        return NOTHING if operation.alone else WHOLE

    def statement(self, statement: Statement) -> Plan[Rows]:
        if statement.fresh and (yield from self._frozen()):
            raise UnusableConnection(
                "a submit of an id that may be known cannot be made inside a transaction of this isolation level",
                "it would not see that a job of this id has run since the transaction began",
                "submit it in READ COMMITTED, or without connection=",
            )
        # What was composed for a table of the user's may be wherever that table is.
        if not (statement.query is not None and statement.query.users):
            yield from self._compare_once()
        rows = yield from super().statement(statement)
        if statement.stores and not rows:
            raise left_out(statement.stores)
        return rows

    def _compare_once(self) -> Plan[None]:
        driver = self.driver()
        if not self.known.has(driver):
            yield from self._check_encoding(driver)
            rows = yield from super().statement(Statement("database_here", {}))
            self.known.compare(driver, KnownDatabase.of(rows), self.kind)

    def _check_encoding(self, driver: Any) -> Plan[None]:
        """Any text may come; one that the connection cannot send would fail in the driver, by chance.

        Raises:
            UnusableConnection: its encoding cannot hold all texts.
        """
        found = reported_encoding(driver)
        if found is None:
            rows = yield SentText("SHOW client_encoding")
            found = str(rows[0][0])
        if not is_utf8(found):
            raise UnusableConnection(
                f"this {self.kind} has the client_encoding {found}",
                "it cannot hold every text that a job may bring",
                "set client_encoding to UTF8 where you connect; nothing was written",
            )

    def _frozen(self) -> Plan[bool]:
        rows = yield SentText("SHOW transaction_isolation")
        return str(rows[0][0]) in FROZEN


def is_utf8(name: str) -> bool:
    """Whether the server takes this name of an encoding for UTF-8. It looks at letters and digits alone, and a pooler
    reports the name as the client has spelled it."""
    return "".join(filter(str.isalnum, name.lower())) in UTF8


def reported_encoding(driver: Any) -> str | None:
    """The client_encoding, which the server reports to each driver whenever it changes; None: it does not tell."""
    status: Any = getattr(getattr(driver, "info", None), "parameter_status", None)  # psycopg and psycopg2
    settings: Any = getattr(driver, "get_settings", None)  # asyncpg
    if callable(status):
        found = status("client_encoding")
    else:
        found = getattr(settings(), "client_encoding", None) if callable(settings) else None
    return found if isinstance(found, str) and found else None


def cast_of(value: Param) -> str:
    """The PostgreSQL type that takes this value as it is."""
    match value:
        case bool():
            return "boolean"
        case int():
            return "bigint"
        case float():
            return "double precision"
        case bytes():
            return "bytea"
        case list():
            return "bigint[]" if value and all(isinstance(item, int) for item in value) else "text[]"
        case _:
            return "text"


def typed(text: str, parameters: tuple[str, ...], params: Mapping[str, Param]) -> str:
    """`text` with every `:name` written as a cast to the type of its value."""
    return _typed(text, tuple((name, cast_of(params[name])) for name in parameters))


@lru_cache(maxsize=1024)
def _typed(text: str, types: tuple[tuple[str, str], ...]) -> str:
    known = dict(types)
    return translated(text, lambda name: f"CAST(:{name} AS {known[name]})")


def sqlstate(error: BaseException) -> str | None:
    """The code that the server gave, however the driver calls it."""
    for holder in _holders(error):
        for name in ("sqlstate", "pgcode"):
            state = getattr(holder, name, None)
            if isinstance(state, str):
                return state
    return None


def _holders(error: BaseException) -> tuple[object, ...]:
    """The error, and those that it stands for: SQLAlchemy's has the driver's, where asyncpg's own stands behind."""
    orig = getattr(error, "orig", None)
    return error, orig, error.__cause__, getattr(orig, "__cause__", None)


def _where(error: BaseException) -> dict[int, bytes | None]:
    """Where in the server it was raised, as psycopg 3 has it: that tells what is of a row from what is of all."""
    for holder in _holders(error):
        diag = getattr(holder, "diag", None)
        if diag is not None:  # psycopg 3 and 2
            return _fields(diag.context, diag.source_function)
        raised_in = getattr(holder, "server_source_function", None)
        if raised_in is not None:  # asyncpg
            return _fields(getattr(holder, "context", None), raised_in)
    return {}


def _fields(context: str | None, source_function: str | None) -> dict[int, bytes | None]:
    given = {DiagnosticField.CONTEXT: context, DiagnosticField.SOURCE_FUNCTION: source_function}
    return {field: text.encode() for field, text in given.items() if text is not None}


def is_lost(error: BaseException) -> bool:
    """Whether the server said with this error that it ends the connection."""
    return sqlstate(error) in LOST_STATES


def server_fault(error: BaseException, kind: str) -> FencerowError | None:
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
            "roll it back, and pass one that may write, on the primary",
        )
    try:
        return known_fault(psycopg.errors.lookup(state)(text, info=_where(error)))
    except KeyError:
        return None  # a code that psycopg has no class for
