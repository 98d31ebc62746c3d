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
from psycopg.pq.abc import PGconn, PGresult

from fencerow.db.queries import Query, numbered
from fencerow.db.run import Rows

# A hint needs not reach the disk, nor a standby, before it is heard: listeners would wait for both. What it tells of
# is there already. The setting ends with the statement.
NOTIFY = """
SELECT set_config('synchronous_commit', 'off', true), pg_notify(:channel, message)
FROM unnest(CAST(:messages AS text[])) AS message
"""
NOTIFIES = Query("notify", (NOTIFY,), ("channel", "messages"))
TAKES_TWO = capabilities.has_pipeline()


class PreparedStatements:
    """What one connection has prepared: names by text. It is given the connection each time, and does not keep it."""

    __slots__ = ("_names", "_reader", "_token")

    def __init__(self, token: int) -> None:
        """`token`: a number of our own, which no other client behind a pooler has in its names."""
        self._token = token
        self._names: dict[str, bytes] = {}
        self._reader = Transformer()

    async def execute(self, pgconn: PGconn, query: Query, params: Mapping[str, Any]) -> Rows:
        """Run the one statement of a query and return its rows.

        Raises:
            psycopg.Error: as the driver's cursor does.
        """
        given = values(query, params)
        try:
            pgconn.send_query_prepared(await self._name(pgconn, query), given)
            await _send(pgconn)
            return self._rows(await _results(pgconn))
        except BaseException as error:
            _broken_off(pgconn, error)
            raise

    async def execute_and_tell(
        self, pgconn: PGconn, query: Query, params: Mapping[str, Any], channel: str, messages: list[str]
    ) -> tuple[Rows, bool]:
        """`execute`, and these wake-ups in the same message; returns whether they were sent, too.

        Raises:
            psycopg.Error: the statement failed. The wake-ups may have been sent all the same.
        """
        given = values(query, params)
        told = values(NOTIFIES, {"channel": channel, "messages": messages})
        try:
            name, notify = await self._name(pgconn, query), await self._name(pgconn, NOTIFIES)
            pgconn.enter_pipeline_mode()
            pgconn.send_query_prepared(name, given)
            pgconn.pipeline_sync()
            pgconn.send_query_prepared(notify, told)
            pgconn.pipeline_sync()
            await _send(pgconn)
            stored = await _results(pgconn)
            is_told = await _is_done(pgconn)
            return self._rows(stored), is_told
        except BaseException as error:
            _broken_off(pgconn, error)
            raise

    async def _name(self, pgconn: PGconn, query: Query) -> bytes:
        (text,) = query.statements
        name = self._names.get(text)
        if name is None:
            name = f"fencerow_{self._token}_{len(self._names)}".encode()
            pgconn.send_prepare(name, numbered(text, query.parameters).encode())
            await _send(pgconn)
            _check(await _results(pgconn))
            self._names[text] = name
        return name

    def _rows(self, results: list[PGresult]) -> Rows:
        _check(results)
        rows: Rows = []
        for result in results:
            if result.ntuples:
                self._reader.set_pgresult(result)
                rows += self._reader.load_rows(0, result.ntuples, tuple)
                self._reader.set_pgresult(None)  # a claim is large
        return rows


async def _is_done(pgconn: PGconn) -> bool:
    """Whether the last statement of a message went well. Of one that did not nobody hears: the first has its answer."""
    try:
        results = await _results(pgconn)
        pgconn.exit_pipeline_mode()
    except Error:
        pgconn.finish()
        return False
    return all(each.status == ExecStatus.TUPLES_OK for each in results)


async def _send(pgconn: PGconn) -> None:
    """All that was given to the driver, which also reads meanwhile: the server may wait for that."""
    while pgconn.flush():
        await _readiness(pgconn, writing=True)
        pgconn.consume_input()


async def _results(pgconn: PGconn) -> list[PGresult]:
    """What was answered to one statement, to its end: in a message of several, that is its sync."""
    found: list[PGresult] = []
    ends = 0
    while True:
        while pgconn.is_busy():
            await _readiness(pgconn)
            pgconn.consume_input()
        result = pgconn.get_result()
        if result is not None and result.status != ExecStatus.PIPELINE_SYNC:
            found.append(result)
            continue
        ends += 1
        if result is not None or not pgconn.pipeline_status:
            break
        if ends > 1:
            break  # no sync: the connection is gone
    if not found:
        raise OperationalError("the server closed the connection before it answered")
    return found


async def _readiness(pgconn: PGconn, *, writing: bool = False) -> None:
    """Wait until there is something to read, or until more can be written."""
    loop, socket = asyncio.get_running_loop(), pgconn.socket
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(socket, _wake, ready)
    if writing:
        loop.add_writer(socket, _wake, ready)
    try:
        await ready
    finally:
        loop.remove_reader(socket)
        if writing:
            loop.remove_writer(socket)


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


def _broken_off(pgconn: PGconn, error: BaseException) -> None:
    """Close the connection, unless this is the server's own answer, which was read to its end."""
    if not (isinstance(error, Error) and error.sqlstate):
        pgconn.finish()


def values(query: Query, params: Mapping[str, Any]) -> list[bytes | None]:
    """The parameters in the order of the query, as PostgreSQL reads them.

    Raises:
        psycopg.DataError: a text has a null character, where a C string would end.
    """
    given = [params[name] for name in query.parameters]
    return [None if each is None else WRITERS[type(each)](each) for each in given]


def _of_text(value: str) -> bytes:
    if "\0" in value:
        raise DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    return value.encode()


def _of_number(value: float) -> bytes:
    return str(value).encode()


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
    return _of_number(value)


WRITERS: dict[type[Any], Callable[[Any], bytes]] = {
    str: _of_text, int: _of_number, float: _of_number, bool: _of_truth, list: _of_list,
}  # fmt: skip


def _check(results: Sequence[PGresult]) -> None:
    """Raise what the server answered, or that the driver lost it."""
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            error = error_from_result(result)
            raise error if error.sqlstate else OperationalError(str(error))
