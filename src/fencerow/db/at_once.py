"""An operation of one prepared statement that is sent at once, without a task, on a connection that is at hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from psycopg import DataError, Error
from psycopg.errors import InsufficientPrivilege

from fencerow.db.begun import Over
from fencerow.db.faults import not_permitted, translated
from fencerow.db.held import HeldConnection
from fencerow.db.loop_pool import LoopPool
from fencerow.db.pools import Pools
from fencerow.db.prepared import PreparedMessage, PreparedStatements, broken_off
from fencerow.db.run import Operation, Statement, Steps
from fencerow.db.tries import Try
from fencerow.db.wire import Answers


def sent_at_once(
    pools: Pools,
    operation: Operation[Any],
    attempt: Try,
    message_of: Callable[[Statement], PreparedMessage],
    over: Over,
) -> bool:
    """Send the one statement of an operation, and have `over` called with its result or its error. False: nothing was
    sent, since no connection is at hand, or since something must be prepared or refused first."""
    if not operation.prepared or operation.patience_s is not None:
        return False
    begun = pools.begin()
    if begun is None:
        return False
    pool, held = begun
    prepared, steps = pools.preparing.of(held.connection), operation.start()
    message: PreparedMessage | None = None
    try:
        message = None if prepared is None else _known(prepared, message_of, next(steps))
    finally:  # whatever could not be written down
        if message is None:
            pools.end(pool, held)
    if prepared is None or message is None:
        return False
    attempt.committing = True
    held.watched.busy()
    sent = SentStatement(pools, pool, held, prepared, message, steps, over)
    try:
        prepared.send(held.wire, message, sent.answered)
    except Error as error:
        asyncio.get_running_loop().call_soon(sent.answered, [], error)
    return True


def _known(
    prepared: PreparedStatements, message_of: Callable[[Statement], PreparedMessage], statement: Statement
) -> PreparedMessage | None:
    try:
        message = message_of(statement)
    except DataError:
        return None  # whoever runs it otherwise meets it, too, and says so
    return message if prepared.knows(message) else None


class SentStatement:
    """A statement that is under way, and who is called with what its operation makes of the answer."""

    __slots__ = ("_held", "_message", "_over", "_pool", "_pools", "_prepared", "_steps")

    def __init__(
        self,
        pools: Pools,
        pool: LoopPool,
        held: HeldConnection,
        prepared: PreparedStatements,
        message: PreparedMessage,
        steps: Steps[Any],
        over: Over,
    ) -> None:
        self._pools = pools
        self._pool = pool
        self._held = held
        self._prepared = prepared
        self._message = message
        self._steps = steps
        self._over = over

    def answered(self, answers: Answers, error: BaseException | None) -> None:
        """Give the connection back, and tell who waits."""
        result: Any = None
        failure: BaseException | None = None
        try:
            with translated():
                result = self._result(answers, error)
        except BaseException as raised:
            failure = raised
        self._pools.end(self._pool, self._held, failure)
        self._over(result, failure)

    def _result(self, answers: Answers, error: BaseException | None) -> Any:
        held = self._held
        try:
            rows = self._prepared.rows(held.wire, self._message, answers, error)
            self._steps.send(rows)
        except StopIteration as done:
            return done.value
        except InsufficientPrivilege as refused:
            raise not_permitted(refused, held.connection.info.user) from refused
        except BaseException as raised:
            broken_off(held.wire, raised)
            raise
        raise AssertionError("an operation that is sent at once is one statement")
