"""asyncpg, with whatever stands on it: plain queries, prepared statements, cursors, COPY."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asyncpg import connect_utils as _connect_utils
from asyncpg import connection, cursor, prepared_stmt
from asyncpg.exceptions import ConnectionDoesNotExistError

from fencerow_proof.check.kinds import Kind
from fencerow_proof.check.seam import PLANTED, Seam

# What is put in other methods' places is below any type that asyncpg gives them.
connect_utils: Any = _connect_utils
Connection: Any = connection.Connection
PreparedStatement: Any = prepared_stmt.PreparedStatement
BaseCursor: Any = cursor.BaseCursor

FAILING = f"DO $$BEGIN RAISE EXCEPTION '{PLANTED}' USING ERRCODE = '57014'; END$$"
WHERE = ("dsn", "host", "port", "user", "password", "passfile", "service", "servicefile", "database")


def lead(conninfo: str) -> None:
    """Let every connection go to this database, whatever it names."""
    original = connect_utils._connect

    async def _connect(**kwargs: Any) -> Any:
        kwargs.update(dict.fromkeys((name for name in WHERE if name in kwargs), None))
        return await original(**{**kwargs, "dsn": conninfo})

    connect_utils._connect = _connect


def watch(seam: Seam) -> None:
    """Lead every statement through the seam."""
    sessions: dict[int, int] = {}

    async def through(there: Any, text: str, send: Callable[[], Awaitable[Any]]) -> Any:
        protocol = there._protocol
        if id(protocol) not in sessions:
            sessions[id(protocol)] = seam.session()
        action = seam.asked(text, "asyncpg", sessions[id(protocol)], there.get_server_pid())
        if action is None:
            return await send()
        try:
            if seam.may_go(action):
                result = await send()
            elif there.is_in_transaction() and action.kind not in (Kind.COMMIT, Kind.ROLLBACK, Kind.BEGIN):
                result = await protocol.query(FAILING, None)
            else:
                there.terminate()
                raise ConnectionDoesNotExistError(PLANTED)
        except BaseException as error:
            seam.over(action, error)
            raise
        seam.over(action, None)
        return result

    execute = Connection.execute
    do_execute = Connection._do_execute
    copy_in, copy_out = Connection._copy_in, Connection._copy_out
    again = PreparedStatement._PreparedStatement__do_execute
    opened, bound = BaseCursor._bind_exec, BaseCursor._bind

    async def _execute(self: Any, query: str, *args: Any, timeout: float | None = None) -> Any:  # noqa: ASYNC109
        if args:  # goes on to _do_execute
            return await execute(self, query, *args, timeout=timeout)
        return await through(self, query, lambda: execute(self, query, timeout=timeout))

    async def _do_execute(self: Any, query: str, *args: Any, **kwargs: Any) -> Any:
        return await through(self, query, lambda: do_execute(self, query, *args, **kwargs))

    async def _copy(self: Any, statement: str, *args: Any) -> Any:
        return await through(self, statement, lambda: copy_in(self, statement, *args))

    async def _copied(self: Any, statement: str, *args: Any) -> Any:
        return await through(self, statement, lambda: copy_out(self, statement, *args))

    async def _again(self: Any, executor: Any) -> Any:
        return await through(self._connection, self._query, lambda: again(self, executor))

    async def _opened(self: Any, *args: Any) -> Any:
        return await through(self._connection, self._query, lambda: opened(self, *args))

    async def _bound(self: Any, *args: Any) -> Any:
        return await through(self._connection, self._query, lambda: bound(self, *args))

    Connection.execute = _execute
    Connection._do_execute = _do_execute
    Connection._copy_in, Connection._copy_out = _copy, _copied
    PreparedStatement._PreparedStatement__do_execute = _again
    BaseCursor._bind_exec, BaseCursor._bind = _opened, _bound
