"""psycopg 3, sync and async, with whatever stands on it: the generators below its cursors and its transactions."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from fencerow.db.preparing import Preparing
from fencerow_proof.check.seam import PLANTED, Seam

# A statement of the server's own that fails: the transaction is then in the state in which a real failure leaves it.
FAILING = f"DO $$BEGIN RAISE EXCEPTION '{PLANTED}' USING ERRCODE = '57014'; END$$".encode()

Actions = Generator[Any, Any, Any]

# What is put in other methods' places is below any type that psycopg gives them.
Connection: Any = psycopg.Connection
AsyncConnection: Any = psycopg.AsyncConnection
BaseConnection: Any = psycopg.BaseConnection
BaseCursor: Any = next(each for each in psycopg.Cursor.__mro__ if each.__name__ == "BaseCursor")


def lead(conninfo: str) -> None:
    """Let every connection go to this database, whatever it names."""
    there = conninfo_to_dict(conninfo)
    where = ("host", "hostaddr", "port", "dbname", "user", "password", "service", "target_session_attrs")

    def led(params: dict[str, Any]) -> dict[str, Any]:
        return {**{name: value for name, value in params.items() if name not in where}, **there}

    plain = Connection._get_connection_params.__func__
    waiting = AsyncConnection._get_connection_params.__func__

    def params(cls: Any, /, conninfo: str, **kwargs: Any) -> dict[str, Any]:
        return led(plain(cls, conninfo, **kwargs))

    async def aparams(cls: Any, /, conninfo: str, **kwargs: Any) -> dict[str, Any]:
        return led(await waiting(cls, conninfo, **kwargs))

    Connection._get_connection_params = classmethod(params)
    AsyncConnection._get_connection_params = classmethod(aparams)


def watch(seam: Seam) -> None:
    """Lead every statement through the seam. What our own engines send past the cursor goes by it then."""
    setattr(Preparing, "of", _nothing_prepared)  # noqa: B010 (a method, to a type checker)
    connections: dict[int, int] = {}

    def session_of(connection: Any) -> int:
        number = connections.get(id(connection.pgconn))
        if number is None:
            number = connections[id(connection.pgconn)] = seam.session()
        return number

    def through(connection: Any, text: bytes | str, send: Callable[[], Actions]) -> Actions:
        shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else text

        def lost() -> Exception:
            connection.pgconn.finish()
            return errors.OperationalError(PLANTED)

        backend = None if connection.closed else connection.pgconn.backend_pid
        idle = connection.pgconn.transaction_status == TransactionStatus.IDLE
        action = seam.asked(shown, "psycopg", session_of(connection), backend)
        if action is None:
            return (yield from send())
        try:
            if seam.may_go(action):
                result = yield from send()
            elif idle or not action.reads + action.writes:
                raise lost()  # there is no transaction to be spoilt, or it is its end that fails
            else:
                result = yield from command(connection, FAILING)
        except BaseException as error:
            seam.over(action, error)
            raise
        seam.over(action, None)
        return result

    command = BaseConnection._exec_command
    prepared = BaseCursor._maybe_prepare_gen
    streamed = BaseCursor._stream_send_gen
    copied = BaseCursor._start_copy_gen

    def exec_command(self: Any, text: Any, *args: Any, **kwargs: Any) -> Actions:
        shown = text if isinstance(text, bytes | str) else text.as_string(self)
        return (yield from through(self, shown, lambda: command(self, text, *args, **kwargs)))

    def maybe_prepare(self: Any, query: Any, **kwargs: Any) -> Actions:
        return (yield from through(self._conn, query.query, lambda: prepared(self, query, **kwargs)))

    def stream_send(self: Any, query: Any, *args: Any, **kwargs: Any) -> Actions:
        return (
            yield from through(self._conn, _text(query, self), lambda: streamed(self, query, *args, **kwargs))
        )

    def start_copy(self: Any, query: Any, *args: Any, **kwargs: Any) -> Actions:
        return (
            yield from through(self._conn, _text(query, self), lambda: copied(self, query, *args, **kwargs))
        )

    BaseConnection._exec_command = exec_command
    BaseCursor._maybe_prepare_gen = maybe_prepare
    BaseCursor._stream_send_gen = stream_send
    BaseCursor._start_copy_gen = start_copy


def _nothing_prepared(_preparing: Preparing, _connection: Any) -> None:
    """No connection has prepared anything."""


def _text(query: Any, cursor: Any) -> str:
    if isinstance(query, bytes):
        return query.decode("utf-8", "replace")
    return query if isinstance(query, str) else str(query.as_string(cursor._conn))
