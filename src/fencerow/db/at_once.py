"""An operation of one prepared statement that is sent at once, without a task, on a connection that is at hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from psycopg import DataError, Error
from psycopg.errors import InsufficientPrivilege
from psycopg.pq.abc import PGresult

from fencerow.db.begun import Over
from fencerow.db.errors import RowRefused
from fencerow.db.faults import as_ours, not_permitted
from fencerow.db.held import HeldConnection
from fencerow.db.left_out import left_out
from fencerow.db.loop_pool import LoopPool
from fencerow.db.pools import Pools
from fencerow.db.prepared import (
    PreparedMessage,
    PreparedStatements,
    WakeUpBehind,
    broken_off,
    check,
    is_told,
    values,
)
from fencerow.db.queries import Query
from fencerow.db.run import Operation, Statement, Steps
from fencerow.db.wakeup_channel import WakeupChannel

# Given what failed, and with what; sees to it that the third is called.
Failed = Callable[[Operation[Any], BaseException, Over], None]


def tell_failed(_: Operation[Any], error: BaseException, over: Over) -> None:
    """Leave it at that."""
    over(None, error)


def sent_at_once(
    pools: Pools,
    operation: Operation[Any],
    query_of: Callable[[Statement], Query],
    wakeups: WakeupChannel,
    over: Over,
    failed: Failed = tell_failed,
) -> bool:
    """Send the one statement of an operation, and have `over` called with its result. Where it failed, `failed` is
    called, which sees to `over`. False: nothing was sent, since no connection is at hand, or since something must be
    prepared or refused first."""
    if not operation.prepared or operation.patience_s is not None:
        return False
    begun = pools.begin()
    if begun is None:
        return False
    pool, held = begun
    is_known = False
    try:
        prepared = held.prepared if pools.preparing.wanted else None
        sent = SentStatement(pools, pool, held, prepared, operation, wakeups, over, failed)
        is_known = sent.is_known(query_of)
    finally:  # whatever could not be written down
        if not is_known:
            pools.end(pool, held)
    if is_known:
        sent.send()
    return is_known


class SentStatement(msgspec.Struct):
    """A statement that is under way, and who is called with what its operation makes of the answer.

    That is as soon as it is answered. A wake-up behind it keeps the connection, and nobody waits for it.
    It keeps nothing that keeps it: some thirty objects of each submit would wait for the garbage collector.
    """

    _pools: Pools
    _pool: LoopPool
    _held: HeldConnection
    _prepared: PreparedStatements | None
    _operation: Operation[Any]
    _wakeups: WakeupChannel
    _over: Over
    _failed: Failed
    _steps: Steps[Any] | None = None  # of an operation that reads its answer
    _message: PreparedMessage | None = None
    _taken_along: list[str] | None = None  # the wake-ups that go behind it
    _stores: Sequence[str] = ()  # the ids of jobs that must be there behind it

    def is_known(self, query_of: Callable[[Statement], Query]) -> bool:
        """Whether it is prepared on this connection, and can be written down."""
        if self._prepared is None:
            return False
        statement = self._operation.whole
        if statement is None:
            self._steps = self._operation.start()
            statement = next(self._steps)
        self._stores = statement.stores
        query = query_of(statement)
        if not self._prepared.knows(query, notifies=self._operation.tells is not None):
            return False
        try:
            self._message = PreparedMessage(query, values(query, statement.params))
        except DataError:
            return False  # whoever runs it otherwise meets it, too, and says so
        return True

    def send(self) -> None:
        """Send it, and the wake-ups whose time has come. Once one is on its way, this sees to it."""
        assert self._prepared is not None and self._message is not None, "it is known"
        try:
            tells = self._operation.tells
            messages = None if tells is None else self._wakeups.taken_along(tells.messages)
            self._taken_along = messages  # whatever breaks off from here on, they are told of
            behind = None if messages is None else WakeUpBehind(self._wakeups.channel, messages, self._told)
            self._prepared.send(self._held.wire, self._message, self._answered, behind)
        except BaseException as error:  # an interrupt, too: whoever is told of it raises it
            self._broken_off(error)

    def _broken_off(self, error: BaseException) -> None:
        """Nothing more goes by this connection. Whom the wire took it calls itself, as it is closed."""
        soon, wire = asyncio.get_running_loop().call_soon, self._held.wire
        soon(wire.close, error)
        for then in [self._answered] if self._taken_along is None else [self._answered, self._told]:
            if not wire.took(then):
                soon(then, [], error)

    def _answered(self, results: list[PGresult], error: BaseException | None) -> None:
        """Give the connection back, and tell who waits."""
        result: Any = None
        failure: BaseException | None = None
        try:
            result = self._result(results, error)
        except Error as raised:
            failure = as_ours(raised)
        except BaseException as raised:
            failure = raised
        self._pools.end(self._pool, self._held, failure)
        if failure is None:
            self._over(result, None)
        else:
            self._failed(self._operation, failure, self._over)

    def _told(self, results: list[PGresult], error: BaseException | None) -> None:
        """The wake-ups behind it are sent, or must be sent once more."""
        assert self._taken_along is not None, "some went behind it"
        if not is_told(results, error):
            self._wakeups.post(self._taken_along)
        self._pools.end_behind(self._pool, self._held)

    def _result(self, results: list[PGresult], error: BaseException | None) -> Any:
        held, prepared, message, steps = self._held, self._prepared, self._message, self._steps
        assert prepared is not None and message is not None, "it is known"
        try:
            check(results, error)
            if self._taken_along is not None and self._operation.tells is not None:
                self._operation.tells.are_told = True  # or will be: `_told`
            if self._stores and not results[0].ntuples:
                raise left_out(self._stores)
            if steps is None:
                return None
            steps.send(prepared.rows(message, results))
        except StopIteration as done:
            return done.value
        except InsufficientPrivilege as refused:
            raise not_permitted(refused, held.connection.info.user) from refused
        except RowRefused:
            raise  # the answer was read to its end
        except BaseException as raised:
            broken_off(held.wire, raised)
            raise
        raise AssertionError("an operation that is sent at once is one statement")
