"""PostgreSQL through psycopg 3: units of work, their transactions, and what a broken connection means for them.

A pooler in transaction mode may stand in between, so nothing here leaves state in a session: no session locks,
and prepared statements only where a connection is known to lead to the server itself (`preparing.py`). LISTEN
has a direct connection of its own.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, TypeVar

import psycopg

from fencerow.db.apart import apart, standing_apart
from fencerow.db.at_once import sent_at_once
from fencerow.db.begun import Over, TasklessRun, settle, told
from fencerow.db.engine import Traits
from fencerow.db.errors import OutcomeUnknown, Unavailable
from fencerow.db.faults import connection_lost, translated
from fencerow.db.known_connections import KnownConnections
from fencerow.db.listener import Listener
from fencerow.db.pools import Pools
from fencerow.db.postgres_session import (
    AsyncPostgresSession,
    PostgresSession,
    PreparedSession,
    aown_transaction,
    atransaction,
    own_transaction,
    transaction,
)
from fencerow.db.prepared import TAKES_TWO
from fencerow.db.queries import Queries, identifier
from fencerow.db.run import Operation, Pause, arun, arun_beside, run
from fencerow.db.strikes import SHELTER, doorway, here, sheltered
from fencerow.db.tries import Try, tries
from fencerow.db.wakeup_channel import WakeupChannel
from fencerow.db.watchdog import OVERRUN_S, Watched

T = TypeVar("T")


class PostgresEngine:
    """Runs operations on one PostgreSQL database."""

    dialect = "postgres"
    traits = Traits(
        one_writer=False,
        has_server=True,
        takes_copy=True,
        has_periods=True,
        sets_itself_up=False,
        brings_clock=False,
    )

    def __init__(
        self,
        conninfo: str,
        queries: Queries,
        *,
        schema: str = "fencerow",
        listen_conninfo: str | None = None,
        pool_max: int = 4,
        connect_timeout_s: float = 5.0,
        statement_timeout_s: float = 30.0,
        prepares: bool = True,
    ) -> None:
        self.conninfo = conninfo
        self.queries = queries
        self.known = KnownConnections()
        self.schema = identifier(schema, "schema name")
        self.pool_max = pool_max
        self.channel = self.schema if self.schema.startswith("fencerow") else f"fencerow_{self.schema}"
        self._listen_conninfo = listen_conninfo or conninfo
        self._pools = Pools(
            conninfo,
            pool_max=pool_max,
            connect_timeout_s=connect_timeout_s,
            statement_timeout_s=statement_timeout_s,
            prepares=prepares,
        )
        self._connect_timeout_s = connect_timeout_s
        self._statement_timeout_s = statement_timeout_s
        self._background: set[asyncio.Task[Any]] = set()
        self._wakeups = WakeupChannel(self._pools, self.channel)

    # --- running ---------------------------------------------------------------------------------

    def run(self, operation: Operation[T]) -> T:
        if here.striker is None:  # nearly always; it spares the shelter
            return run(tries(operation, self._pools.preparing), partial(self._answer, operation))
        with SHELTER:
            return run(tries(operation, self._pools.preparing), partial(self._answer, operation))

    def _answer(self, operation: Operation[Any], attempt: Try) -> Any:
        """Run it once, in a transaction of its own."""
        with (
            translated(patience_s=operation.patience_s),
            self._pools.connection() as connection,
            self._pools.watched(connection, limit_s=operation.patience_s) as watched,
        ):
            in_order = self._pools.preparing.wants_order(connection)
            session = PostgresSession(
                connection,
                self.queries,
                watched,
                prepare=operation.prepared,
                in_order=in_order and operation.walks,
            )
            if operation.alone:
                attempt.committing = True  # one statement: sending it is committing it
                return run(operation.start(), session.execute)
            with own_transaction(connection, watched, in_order=in_order):
                result = run(operation.start(), session.execute)
                attempt.committing = True
            return result

    async def arun(self, operation: Operation[T]) -> T:
        """Run it so that a cancelled caller leaves no statement half read and no commit in doubt: sent at once, in the
        caller's task where that stands apart, or else in a task of its own."""
        if operation.prepared:
            answered: asyncio.Future[T] = asyncio.get_running_loop().create_future()
            if self.begin(operation, partial(settle, answered)):
                return await answered
        running = arun(tries(operation, self._pools.preparing), partial(self._aanswer, operation))
        if (own := standing_apart()) is not None:
            self._background.add(own)
            try:
                return await running
            finally:
                self._background.discard(own)
        task = asyncio.create_task(running)
        self._background.add(task)
        task.add_done_callback(self._over)
        return await asyncio.shield(task)

    def begin(self, operation: Operation[T], over: Over) -> bool:
        """Send an operation at once, without a task, and have `over` called from the event loop with its result or its
        error. False: it must be run by `arun`; nothing was sent.

        Who waits for it may be cancelled, which changes nothing here.
        """
        return sent_at_once(self._pools, operation, self.queries.of, self._wakeups, over, self._first_failed)

    def _first_failed(self, operation: Operation[Any], error: BaseException, over: Over) -> None:
        """Only what failed needs the policy for what is tried again: it has tried once."""
        requests = tries(operation, self._pools.preparing)
        attempt = next(requests)
        assert isinstance(attempt, Try), "the first is no pause"
        attempt.committing = True
        begin, beside = partial(self._begin_try, operation), partial(self._go_on, operation)
        TasklessRun(requests, over, begin=begin, beside=beside).answered(None, error)

    def _begin_try(self, operation: Operation[Any], attempt: Try | Pause, over: Over) -> bool:
        if isinstance(attempt, Pause):
            return False
        attempt.committing = sent_at_once(self._pools, operation, self.queries.of, self._wakeups, over)
        return attempt.committing

    def _go_on(
        self, operation: Operation[Any], requests: Generator[Try | Pause, Any, Any], over: Over
    ) -> None:
        task = apart(told(arun(requests, partial(self._aanswer, operation)), over))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _over(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled():
            task.exception()  # a caller who still waits gets it; for one who was cancelled it is no news

    async def _aanswer(self, operation: Operation[Any], attempt: Try) -> Any:
        if operation.prepared and operation.patience_s is None:
            return await self._aprepared(operation, attempt)
        if operation.keeps_plans and self._pools.preparing.wanted:
            return await self._aplanned(operation, attempt)
        with translated(patience_s=operation.patience_s):
            async with self._pools.aconnection() as connection:
                with self._pools.awatched(connection, limit_s=operation.patience_s) as watched:
                    in_order = self._pools.preparing.wants_order(connection)
                    session = AsyncPostgresSession(
                        connection, self.queries, watched, in_order=in_order and operation.walks
                    )
                    if operation.alone:
                        attempt.committing = True
                        return await arun(operation.start(), session.execute)
                    async with aown_transaction(connection, watched, in_order=in_order):
                        running = arun_beside if operation.computes else arun
                        result = await running(operation.start(), session.execute)
                        attempt.committing = True
                    return result

    async def _aprepared(self, operation: Operation[Any], attempt: Try) -> Any:
        """One statement, on a connection that stays at hand for the next."""
        with translated():
            async with self._pools.aheld() as held:
                attempt.committing = True
                prepared = held.prepared
                if prepared is None or not self._pools.preparing.wanted:
                    held.wire.let_go()
                    in_order = self._pools.preparing.wants_order(held.connection) and operation.walks
                    session = AsyncPostgresSession(
                        held.connection, self.queries, held.watched, in_order=in_order
                    )
                    return await arun(operation.start(), session.execute)
                alone = PreparedSession(held, prepared, self.queries.of, notifies=operation.tells is not None)
                return await arun(operation.start(), alone.execute)

    async def _aplanned(self, operation: Operation[Any], attempt: Try) -> Any:
        """One transaction, whose statements are prepared where they may be, on a connection that stays at hand."""
        with translated():
            async with self._pools.aheld() as held:
                prepared = self._pools.preparing.of(held.connection)
                in_order = self._pools.preparing.wants_order(held.connection)
                begins_with = prepared is not None and TAKES_TWO
                session: AsyncPostgresSession | PreparedSession = (
                    AsyncPostgresSession(held.connection, self.queries, held.watched)
                    if prepared is None
                    else PreparedSession(held, prepared, self.queries.of, notifies=False, begins=begins_with)
                )
                held.wire.let_go()
                async with aown_transaction(
                    held.connection, held.watched, in_order=in_order, begins=not begins_with
                ):
                    try:
                        result = await arun(operation.start(), session.execute)
                    finally:
                        held.wire.let_go()  # the driver itself sends what ends it
                    attempt.committing = True
                return result

    @doorway
    @contextmanager
    def session(self, *, idle_s: float | None = None) -> Iterator[PostgresSession]:
        committing = False
        try:
            with (
                translated(around_user_code=True),
                self._pools.connection(for_user=True) as connection,
                self._pools.watched(connection) as watched,
                transaction(connection, watched, idle_s),
            ):
                yield PostgresSession(connection, self.queries, watched)
                committing = True
        except psycopg.Error as error:
            if connection_lost(error):
                raise _lost_session(committing) from error
            raise

    @asynccontextmanager
    async def asession(self, *, idle_s: float | None = None) -> AsyncIterator[AsyncPostgresSession]:
        committing = False
        try:
            with translated(around_user_code=True):
                async with self._pools.aconnection(for_user=True) as connection:
                    with self._pools.awatched(connection) as watched:
                        async with atransaction(connection, watched, idle_s):
                            yield AsyncPostgresSession(connection, self.queries, watched)
                            committing = True
        except psycopg.Error as error:
            if connection_lost(error):
                raise _lost_session(committing) from error
            raise

    def watched(self, fileno: int) -> Watched:
        """Watch the socket of a connection that is not ours, for a block: see `Watched`. Nothing is cancelled there."""
        return self._pools.watched_socket(fileno)

    # --- wake-ups --------------------------------------------------------------------------------

    def wake(self, messages: list[str]) -> None:
        if here.striker is None:
            self._wakeups.post(messages)
        else:
            with SHELTER:
                self._wakeups.post(messages)

    @sheltered
    def listen(
        self, callback: Callable[[str | None], None], *, loop: asyncio.AbstractEventLoop | None = None
    ) -> Callable[[], None]:
        listener = Listener(
            self._listen_conninfo,
            self.channel,
            callback,
            self._pools.client_settings(),
            self._pools.watched,
            loop,
        )
        listener.start()
        return listener.stop

    def imprint(self) -> None:
        """Only the server could say."""

    @sheltered
    def flush(self, timeout_s: float) -> None:
        self._wakeups.flush(timeout_s)

    def keeper(self, *, patience_s: float = math.inf) -> PostgresEngine:
        return PostgresEngine(
            self.conninfo,
            self.queries,
            schema=self.schema,
            pool_max=1,
            connect_timeout_s=self._connect_timeout_s,
            statement_timeout_s=min(self._statement_timeout_s, patience_s),
            prepares=False,  # every few seconds one statement: what a session keeps for it is not worth it
        )

    # --- connections -----------------------------------------------------------------------------

    def close(self) -> None:
        self._wakeups.close()
        self._pools.close()

    async def aclose(self) -> None:
        pending = [task for task in self._background if task.get_loop() is asyncio.get_running_loop()]
        if pending:
            await asyncio.wait(pending, timeout=self._statement_timeout_s + OVERRUN_S)
        await self._pools.aanswered(self._statement_timeout_s + OVERRUN_S)
        await self._pools.aclose()
        await asyncio.to_thread(self.close)


def _lost_session(committing: bool) -> Unavailable | OutcomeUnknown:
    if committing:
        return OutcomeUnknown(
            "the connection broke at COMMIT", "it may have happened or not", "ask before repeating"
        )
    return Unavailable(
        "the connection broke inside the transaction", "it was rolled back", "repeat the whole unit"
    )
