"""Prepared statements on an async connection past the driver's cursor, and a wake-up in the same message.

A short statement costs the client twice as much by the cursor: it looks at the type of each parameter and makes the
names of columns that nobody reads. Here parameters go as text, whose types the statement says itself, by the numbers
under which asyncpg sends them.

With a wake-up the message holds two transactions. The server runs the second when the first is committed, so a wake-up
tells of nothing that may yet be undone, and holds no lock while the first waits for the disk. A listener hears it one
round trip and one thread's turn earlier than from who sends it afterwards.

Use a connection here that nobody else uses meanwhile, outside a transaction. What breaks off leaves it closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from psycopg import DataError, Error, OperationalError, capabilities
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from fencerow.db.queries import Query, numbered
from fencerow.db.run import Rows, Tells
from fencerow.db.wire import Answers, ConnectionWire, Then

# A hint needs not reach the disk, nor a standby, before it is heard: listeners would wait for both. What it tells of
# is there already. The setting ends with the statement.
NOTIFY = """
SELECT set_config('synchronous_commit', 'off', true), pg_notify(:channel, message)
FROM unnest(CAST(:messages AS text[])) AS message
"""
NOTIFIES = Query("notify", (NOTIFY,), ("channel", "messages"))
TAKES_TWO = capabilities.has_pipeline()


class PreparedMessage:
    """One statement with its parameters as they are sent, and the wake-ups that go behind it."""

    __slots__ = ("given", "query", "tells", "told")

    def __init__(
        self, query: Query, params: Mapping[str, Any], tells: Tells | None = None, channel: str = ""
    ) -> None:
        """Raises psycopg.DataError: a text has a null character."""
        self.query = query
        self.given = values(query, params)
        self.tells = tells
        self.told = (
            None if tells is None else values(NOTIFIES, {"channel": channel, "messages": tells.messages})
        )


class PreparedStatements:
    """What one connection has prepared: names by text. It is given the connection each time, and does not keep it."""

    __slots__ = ("_names", "_reader", "_token")

    def __init__(self, token: int) -> None:
        """`token`: a number of our own, which no other client behind a pooler has in its names."""
        self._token = token
        self._names: dict[str, bytes] = {}
        self._reader = Transformer()

    async def execute(self, wire: ConnectionWire, message: PreparedMessage) -> Rows:
        """Run a statement and return its rows; what breaks off closes the connection.

        Raises:
            psycopg.Error: as the driver's cursor does. Its wake-ups may have been sent all the same.
        """
        answered = _Answered()
        try:
            if not self.send(wire, message, answered):
                await self._prepare(wire, message.query)
                if message.told is not None:
                    await self._prepare(wire, NOTIFIES)
                self.send(wire, message, answered)
            answers, error = await answered.future
            return self.rows(wire, message, answers, error)
        except BaseException as error:
            broken_off(wire, error)
            raise

    def send(self, wire: ConnectionWire, message: PreparedMessage, then: Then) -> bool:
        """Send it, and have `then` called with the answers, which `rows` reads. False: something of it must be prepared
        first, and nothing was sent.

        Raises:
            psycopg.Error: it could not be sent. The connection is closed.
        """
        name, notify = self._names.get(message.query.statements[0]), self._names.get(NOTIFY)
        if name is None or (notify is None and message.told is not None):
            return False
        pgconn = wire.pgconn
        try:
            if message.told is None:
                pgconn.send_query_prepared(name, message.given)
                wire.ask(1, then)
                return True
            assert notify is not None
            pgconn.enter_pipeline_mode()
            pgconn.send_query_prepared(name, message.given)
            pgconn.pipeline_sync()
            pgconn.send_query_prepared(notify, message.told)
            pgconn.pipeline_sync()
            wire.ask(2, then)
        except BaseException:
            wire.close()
            raise
        return True

    def knows(self, message: PreparedMessage) -> bool:
        """Whether all of it is prepared here."""
        known = self._names
        return message.query.statements[0] in known and (message.told is None or NOTIFY in known)

    def rows(
        self, wire: ConnectionWire, message: PreparedMessage, answers: Answers, error: BaseException | None
    ) -> Rows:
        """The rows that a message brought; whether its wake-ups were sent is noted. Of one that failed nobody hears:
        the statement has its answer.

        Raises:
            psycopg.Error: the statement failed. Only the server's own answer leaves the connection open.
        """
        if not answers:
            assert error is not None, "it was answered, or it failed"
            raise error
        is_told = message.told is not None and error is None and _is_done(wire, answers[1])
        rows = self._rows(message.query, answers[0])
        if message.tells is not None:
            message.tells.are_told = is_told
        return rows

    async def _prepare(self, wire: ConnectionWire, query: Query) -> None:
        (text,) = query.statements
        if text not in self._names:
            name = f"fencerow_{self._token}_{len(self._names)}".encode()
            answered = _Answered()
            wire.pgconn.send_prepare(name, numbered(text, query.parameters).encode())
            wire.ask(1, answered)
            answers, error = await answered.future
            if error is not None:
                raise error
            _check(answers[0])
            self._names[text] = name

    def _rows(self, query: Query, results: list[PGresult]) -> Rows:
        _check(results)
        rows: Rows = []
        for result in results:
            if result.ntuples:
                self._reader.set_pgresult(result)
                rows += self._reader.load_rows(0, result.ntuples, tuple)
                self._reader.set_pgresult(None)  # a claim is large
        return query.with_names(_names(results[-1]), rows) if query.users else rows


class _Answered:
    """What a coroutine waits for: the answers, and the error that kept the rest from coming."""

    __slots__ = ("future",)

    def __init__(self) -> None:
        self.future: asyncio.Future[tuple[Answers, BaseException | None]] = (
            asyncio.get_running_loop().create_future()
        )

    def __call__(self, answers: Answers, error: BaseException | None) -> None:
        if not self.future.done():
            self.future.set_result((answers, error))


def _is_done(wire: ConnectionWire, results: list[PGresult]) -> bool:
    """Whether the last statement of a message went well."""
    try:
        wire.pgconn.exit_pipeline_mode()
    except Error:
        wire.close()
        return False
    return all(each.status == ExecStatus.TUPLES_OK for each in results)


def broken_off(wire: ConnectionWire, error: BaseException) -> None:
    """Close the connection, unless this is the server's own answer, which was read to its end."""
    if not (isinstance(error, Error) and error.sqlstate):
        wire.close()


def values(query: Query, params: Mapping[str, Any]) -> list[bytes | None]:
    """The parameters in the order of the query, as PostgreSQL reads them.

    Raises:
        psycopg.DataError: a text has a null character, where a C string would end.
    """
    given = [params[name] for name in query.parameters]
    return [None if each is None else WRITERS[type(each)](each) for each in given]


def _names(result: PGresult) -> list[str]:
    return [(result.fname(column) or b"").decode() for column in range(result.nfields)]


def _of_text(value: str) -> bytes:
    if "\0" in value:
        raise DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    return value.encode()


def _of_whole(value: int) -> bytes:
    return b"%d" % value


def _of_float(value: float) -> bytes:
    return float.__repr__(value).encode()


def _of_truth(value: bool) -> bytes:
    return b"t" if value else b"f"


def _of_list(value: list[Any]) -> bytes:
    return b"{%s}" % b",".join(map(_element, value))


def _element(value: str | int | None) -> bytes:
    """A value in the text of an array."""
    if value is None:
        return b"NULL"
    if isinstance(value, str):
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        return _of_text(f'"{quoted}"')
    return WRITERS[type(value)](value)


class _Writers(dict[type[Any], Callable[[Any], bytes]]):
    """A type that is not there goes as its base does: a name may be the member of an enum."""

    def __missing__(self, kind: type[Any]) -> Callable[[Any], bytes]:
        base = next((base for base in kind.__mro__ if base in self), None)
        if base is None:
            raise TypeError(f"{kind.__qualname__} is no type of a parameter")
        self[kind] = found = self[base]
        return found


WRITERS = _Writers({
    str: _of_text, int: _of_whole, float: _of_float, bool: _of_truth, list: _of_list,
})  # fmt: skip


def _check(results: Sequence[PGresult]) -> None:
    """Raise what the server answered, or that the driver lost it."""
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            error = error_from_result(result)
            raise error if error.sqlstate else OperationalError(str(error))
