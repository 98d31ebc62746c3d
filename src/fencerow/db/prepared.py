"""Prepared statements on an async connection past the driver's cursor, and a wake-up in the same message.

A short statement costs the client twice as much by the cursor: it looks at the type of each parameter and makes the
names of columns that nobody reads. Here parameters go as text, whose types the statement says itself, by the numbers
under which asyncpg sends them.

With a wake-up the message holds two transactions. The server runs the second when the first is committed, so a wake-up
tells of nothing that may yet be undone, and holds no lock while the first waits for the disk. A listener hears it one
round trip and one thread's turn earlier than from who sends it afterwards. Who waits for the first goes on when that is
answered, and what is asked next may go right behind the second.

Use a connection here that nobody else uses meanwhile, outside a transaction. What breaks off leaves it closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from psycopg import DataError, Error, OperationalError, capabilities
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from fencerow.db.queries import Query, numbered
from fencerow.db.run import AlikeParameters, Rows
from fencerow.db.wire import ConnectionWire, Then

# A hint needs not reach the disk, nor a standby, before it is heard: listeners would wait for both. What it tells of
# is there already. The setting ends with the statement.
NOTIFY = """
SELECT set_config('synchronous_commit', 'off', true), pg_notify(:channel, message)
FROM unnest(CAST(:messages AS text[])) AS message
"""
# Behind another statement it waits no longer for the lock that all commits with a NOTIFY in them share: who holds that
# while a standby is away would keep what was sent behind this for as long. The thread sends it then, and may wait.
NOTIFY_BEHIND = NOTIFY.replace("SELECT ", "SELECT set_config('lock_timeout', '250ms', true), ")
NOTIFIES = Query("notify", (NOTIFY_BEHIND,), ("channel", "messages"))
TAKES_TWO = capabilities.has_pipeline()


class PreparedMessage(msgspec.Struct):
    """One statement with its parameters as they are sent: its `values`."""

    query: Query
    given: list[bytes | None]


class WakeUpBehind:
    """The wake-ups that go behind a statement, and who is called when they are answered."""

    __slots__ = ("given", "then")

    def __init__(self, channel: str, messages: list[str], then: Then) -> None:
        self.given = values(NOTIFIES, {"channel": channel, "messages": messages})
        self.then = then


class PreparedStatements:
    """What one connection has prepared: names by text. It is given the connection each time, and does not keep it."""

    __slots__ = ("_names", "_reader", "_token")

    def __init__(self, token: int) -> None:
        """`token`: a number of our own, which no other client behind a pooler has in its names."""
        self._token = token
        self._names: dict[str, bytes] = {}
        self._reader = Transformer()

    async def execute(
        self,
        wire: ConnectionWire,
        message: PreparedMessage,
        *,
        notifies: bool = False,
        ahead: Sequence[tuple[PreparedMessage, Rows]] = (),
    ) -> Rows:
        """Run a statement on a wire that is quiet and return its rows; what breaks off closes the connection.

        `notifies`: the next will have a wake-up with it, so that is prepared as well. `ahead`: these go before it in
        one message, and their rows into the lists beside them. None that comes behind one that fails is run.

        Raises:
            psycopg.Error: as the driver's cursor does.
        """
        answered = _Answered()
        try:
            for each, _ in ahead:
                await self._prepare(wire, each.query)
            await self._prepare(wire, message.query)
            if notifies:
                await self._prepare(wire, NOTIFIES)
            if ahead:
                self._send_ahead(wire, [each for each, _ in ahead])
            self.send(wire, message, answered)
            results, error = await answered.future
            check(results, error)
            if len(results) <= len(ahead):
                raise OperationalError("the server closed the connection before it answered")
            for (each, rows), result in zip(ahead, results, strict=False):
                rows += self.rows(each, [result])
            return self.rows(message, results[-1:])
        except BaseException as error:
            broken_off(wire, error)
            raise

    def send(
        self, wire: ConnectionWire, message: PreparedMessage, then: Then, behind: WakeUpBehind | None = None
    ) -> None:
        """Send what is prepared, behind what is not answered yet, and have `then` called with the answer, which `rows`
        reads. What it wakes goes `behind` it.

        Raises:
            psycopg.Error: it could not be sent, nor what is behind it. Close the wire: nobody may use it further.
        """
        pgconn, name = wire.pgconn, self._names[message.query.statements[0]]
        if behind is None and wire.is_quiet and not pgconn.pipeline_status:
            pgconn.send_query_prepared(name, message.given)
            wire.ask(then)
            return
        if wire.is_quiet and not pgconn.pipeline_status:  # else some were given ahead
            pgconn.enter_pipeline_mode()
        pgconn.send_query_prepared(name, message.given)
        pgconn.pipeline_sync()
        if behind is None:
            wire.ask(then)
            return
        pgconn.send_query_prepared(self._names[NOTIFIES.statements[0]], behind.given)
        pgconn.pipeline_sync()
        wire.ask(then, behind.then)

    def _send_ahead(self, wire: ConnectionWire, ahead: Sequence[PreparedMessage]) -> None:
        """Give these to the driver, which sends them with the statement behind them, before one sync."""
        wire.pgconn.enter_pipeline_mode()
        for each in ahead:
            wire.pgconn.send_query_prepared(self._names[each.query.statements[0]], each.given)

    def knows(self, query: Query, *, notifies: bool) -> bool:
        """Whether it is prepared here, and a wake-up as well."""
        known = self._names
        return query.statements[0] in known and (not notifies or NOTIFIES.statements[0] in known)

    def rows(self, message: PreparedMessage, results: list[PGresult]) -> Rows:
        """The rows that a message brought, which went well."""
        rows: Rows = []
        for result in results:
            if result.ntuples:
                self._reader.set_pgresult(result)
                rows += self._reader.load_rows(0, result.ntuples, tuple)
                self._reader.set_pgresult(None)  # a claim is large
        query = message.query
        return query.with_names(_names(results[-1]), rows) if query.users else rows

    async def _prepare(self, wire: ConnectionWire, query: Query) -> None:
        (text,) = query.statements
        if text not in self._names:
            name = f"fencerow_{self._token}_{len(self._names)}".encode()
            answered = _Answered()
            wire.pgconn.send_prepare(name, numbered(text, query.parameters).encode())
            wire.ask(answered)
            results, error = await answered.future
            check(results, error)
            self._names[text] = name


class _Answered:
    """What a coroutine waits for: the results, and the error that kept them from coming."""

    __slots__ = ("future",)

    def __init__(self) -> None:
        self.future: asyncio.Future[tuple[list[PGresult], BaseException | None]] = (
            asyncio.get_running_loop().create_future()
        )

    def __call__(self, results: list[PGresult], error: BaseException | None) -> None:
        if not self.future.done():
            self.future.set_result((results, error))


def check(results: Sequence[PGresult], error: BaseException | None) -> None:
    """Raise what kept the answer from coming, what the server answered, or that the driver lost it.

    Raises:
        psycopg.Error: the statement failed. Only the server's own answer leaves the connection open.
    """
    if error is not None:
        raise error
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            failed = error_from_result(result)
            raise failed if failed.sqlstate else OperationalError(str(failed))


def is_told(results: list[PGresult], error: BaseException | None) -> bool:
    """Whether a wake-up went well."""
    return error is None and all(each.status == ExecStatus.TUPLES_OK for each in results)


def broken_off(wire: ConnectionWire, error: BaseException) -> None:
    """Close the connection, unless this is the server's own answer, which was read to its end."""
    if not (isinstance(error, Error) and error.sqlstate):
        wire.close()


def values(query: Query, params: Mapping[str, Any]) -> list[bytes | None]:
    """The parameters in the order of the query, as PostgreSQL reads them.

    Raises:
        psycopg.DataError: a text has a null character, where a C string would end.
    """
    if type(params) is not AlikeParameters:
        return [
            None if (each := params[name]) is None else WRITERS[type(each)](each) for name in query.parameters
        ]
    # Those that are the same in many statements are written once: two thirds of what all of them cost.
    common, text = params.common, query.statements[0]
    if (known := common.as_sent.get(text)) is None:
        own = [(place, name) for place, name in enumerate(query.parameters) if name not in common.params]
        of_nobody = {**dict.fromkeys(params), **common.params}  # the first job's own would be kept as long
        known = common.as_sent[text] = values(query, of_nobody), own
    given: list[bytes | None] = known[0].copy()
    for place, name in known[1]:
        each = params[name]
        given[place] = None if each is None else WRITERS[type(each)](each)
    return given


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
