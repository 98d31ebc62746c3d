"""`event.transaction()`: the handler's effects and the acknowledgement of the event in one commit.

The acknowledgement is written when the block ends, and the commit follows at once. A reader who has lost the
partition meanwhile changes no row: everything is rolled back and it is told. PostgreSQL ends a transaction in which
nothing was said for longer than a handler may take: a process that is stopped inside the block holds its rows, which
whoever delivers the event next may need, no longer than that. It is on a connection of ours, or on a session of the
user's.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, ExitStack
from types import TracebackType
from typing import Generic, TypeVar

from fencerow.db.engine import AsyncSession, Engine, Session
from fencerow.db.handed import Handed
from fencerow.db.own import own_asession, own_session
from fencerow.db.run import Operation, joining
from fencerow.db.strikes import SHELTER, sheltered
from fencerow.events.consumers import bound_delivery
from fencerow.events.errors import EventTransactionMisuse

T = TypeVar("T")


class EventTransaction(Generic[T]):
    """A context manager, sync and async; its value is the connection to write through.

    `given` is the user's session, or what makes it.
    """

    def __init__(
        self,
        engine: Engine,
        acknowledge: Operation[None],
        *,
        is_async: bool,
        idle_s: float,
        given: object | None = None,
    ) -> None:
        self._engine = engine
        self._acknowledge = acknowledge
        self._given = given
        self._handed = Handed(
            "event.transaction()",
            "the acknowledgement of the event",
            EventTransactionMisuse,
            is_async=is_async,
        )
        self._idle_s = idle_s
        self._sync = ExitStack()
        self._async = AsyncExitStack()
        self._session: Session | None = None
        self._asession: AsyncSession | None = None
        self.acknowledged = False

    def __enter__(self) -> T:
        self._handed.enter(in_async=False)
        try:
            with SHELTER:
                self._session = self._sync.enter_context(self._opening())
                if self._given is not None:
                    self._session.run(self._bound)
                connection: T = self._session.connection
        except BaseException as error:  # struck while it was opened: nobody would leave it
            self._sync.__exit__(type(error), error, error.__traceback__)
            raise
        return connection

    @sheltered
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._session is not None
        if error is not None:
            self._sync.__exit__(kind, error, trace)
            return
        with self._sync:
            self._session.flush()
            self._handed.check_open(self._session)
            self._session.run(self._acknowledge)
        self.acknowledged = True

    async def __aenter__(self) -> T:
        self._handed.enter(in_async=True)
        try:
            self._asession = await self._async.enter_async_context(self._aopening())
            if self._given is not None:
                await self._asession.arun(self._bound)
            connection: T = self._asession.connection
        except BaseException as error:
            await self._async.__aexit__(type(error), error, error.__traceback__)
            raise
        return connection

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._asession is not None
        if error is not None:
            await self._async.__aexit__(kind, error, trace)
            return
        async with self._async:
            await self._asession.aflush()
            self._handed.check_open(self._asession)
            await self._asession.arun(self._acknowledge)
        self.acknowledged = True

    def _opening(self) -> AbstractContextManager[Session]:
        if self._given is None:
            return self._engine.session(idle_s=self._idle_s)
        return own_session(self._given, self._engine, self._handed.ended_by_hand)

    def _aopening(self) -> AbstractAsyncContextManager[AsyncSession]:
        if self._given is None:
            return self._engine.asession(idle_s=self._idle_s)
        return own_asession(self._given, self._engine, self._handed.ended_by_hand)

    @property
    def _bound(self) -> Operation[None]:
        """The first step on a session of the user's."""
        return joining(bound_delivery(self._idle_s), self._given)
