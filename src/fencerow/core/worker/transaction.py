"""`job.transaction()`: the handler's effects and the job's success in one commit.

The transaction stays open until the handler returns; then the fenced success is written in it and it
is committed. A stale attempt's success changes no row: everything is rolled back and it is told. It is on a connection
of ours, or on a session of the user's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from types import TracebackType
from typing import Generic, TypeVar

from fencerow.core.errors import Busy, TransactionMisuse
from fencerow.core.store import store
from fencerow.core.store.attempts import MovedJob, Requeued
from fencerow.core.worker.attempt import Attempt, lease_lost
from fencerow.core.worker.follow_ups import FollowUps
from fencerow.db.engine import AsyncSession, Engine, Session
from fencerow.db.handed import Handed
from fencerow.db.own import own_asession, own_session
from fencerow.db.rollback import rolling_back
from fencerow.db.run import Operation, joining
from fencerow.db.strikes import SHELTER, sheltered

T = TypeVar("T")

LOCKED_S = 10.0  # how long a stranger's lock on the job's row is waited out before the commit
LOCKED_PAUSE_S = 0.02


class JobTransaction(Generic[T]):
    """A context manager, sync and async. Leaving the block keeps the transaction open; an error ends it.

    `opened` is called when it has begun, in whatever thread that is. `given` is the user's session, or what makes it.
    `follow_ups` are submitted in it.
    """

    def __init__(
        self,
        engine: Engine,
        attempt: Attempt,
        opened: Callable[[], None],
        given: object | None,
        follow_ups: FollowUps,
    ) -> None:
        self._engine = engine
        self._attempt = attempt
        self._opened = opened
        self._given = given
        self._follow_ups = follow_ups
        self.moved: MovedJob | None = None  # what the commit brought about, once it is certain
        self.made: list[Requeued] = []  # the follow-ups among that
        self._sync: ExitStack | None = None
        self._async: AsyncExitStack | None = None
        # The open transaction: of a plain handler, or of an async one.
        self.session: Session | None = None
        self.asession: AsyncSession | None = None
        self.in_doubt = False  # the commit was sent: after an error it may have happened or not
        self._handed = Handed(
            "job.transaction()", "the job's success", TransactionMisuse, is_async=attempt.handler.is_async
        )

    @property
    def is_open(self) -> bool:
        """Whether something waits to be committed with the success."""
        return self.session is not None or self.asession is not None

    def __enter__(self) -> T:
        self._handed.enter(in_async=False)
        with SHELTER:  # struck behind it, the worker rolls back what is open here
            stack = ExitStack()
            session = self.session = stack.enter_context(
                self._engine.session()
                if self._given is None
                else own_session(self._given, self._engine, self._handed.ended_by_hand)
            )
            self._sync = stack
            session.run(joining(self._bound(), self._given))
            self._opened()
            connection: T = session.connection
            return connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and self.session is not None:
            try:
                self.session.flush()
            except BaseException as refused:
                self.roll_back(refused)
                raise
        if error is not None:
            self.roll_back(error)

    async def __aenter__(self) -> T:
        self._handed.enter(in_async=True)
        stack = AsyncExitStack()
        session = self.asession = await stack.enter_async_context(
            self._engine.asession()
            if self._given is None
            else own_asession(self._given, self._engine, self._handed.ended_by_hand)
        )
        self._async = stack
        await session.arun(joining(self._bound(), self._given))
        self._opened()
        connection: T = session.connection
        return connection

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and self.asession is not None:
            try:
                await self.asession.aflush()
            except BaseException as refused:
                await self.aroll_back(refused)
                raise
        if error is not None:
            await self.aroll_back(error)

    def is_on(self, connection: object) -> bool:
        """Whether this is the connection that it gave to the handler, and open: its commit is the job's success."""
        session = self.session or self.asession
        return session is not None and _below(session.connection) is _below(connection)

    def abandon(self) -> None:
        """The handler was given up: what its transaction locks must not wait for it. From any thread."""
        session = self.session or self.asession
        if session is not None:
            session.abandon()

    def commit(self, result: str) -> None:
        """Write the success and commit, in the thread that opened it.

        Raises:
            LeaseLost: this attempt no longer holds the job; everything was rolled back.
            TransactionMisuse: the handler had ended the transaction itself.
        """
        session, stack = self.session, self._sync
        assert session is not None and stack is not None
        try:
            session.flush()
            self._handed.check_open(session)
            until = time.monotonic() + LOCKED_S
            while not (done := session.run(self._success(result))).moved:
                self._check_locked(session.run(self._fence()), until)
                time.sleep(LOCKED_PAUSE_S)
        except BaseException as error:
            self.roll_back(error)
            raise
        self.in_doubt, self.session = True, None
        stack.close()
        self.moved, self.made = done.moved[0], done.made

    async def acommit(self, result: str) -> None:
        """The same for an async handler."""
        session, stack = self.asession, self._async
        assert session is not None and stack is not None
        try:
            await session.aflush()
            self._handed.check_open(session)
            until = time.monotonic() + LOCKED_S
            while not (done := await session.arun(self._success(result))).moved:
                self._check_locked(await session.arun(self._fence()), until)
                await asyncio.sleep(LOCKED_PAUSE_S)
        except BaseException as error:
            await self.aroll_back(error)
            raise
        self.in_doubt, self.asession = True, None
        await stack.aclose()
        self.moved, self.made = done.moved[0], done.made

    @sheltered
    def roll_back(self, error: BaseException) -> None:
        """Undo everything. Harmless when it is over already."""
        if self.session is not None and self._sync is not None:
            self.session, stack = None, self._sync
            with rolling_back(error):
                stack.__exit__(type(error), error, error.__traceback__)

    async def aroll_back(self, error: BaseException) -> None:
        """The same for an async handler."""
        if self.asession is not None and self._async is not None:
            self.asession, stack = None, self._async
            with rolling_back(error):
                await stack.__aexit__(type(error), error, error.__traceback__)

    def _bound(self) -> Operation[None]:
        return store.bound_idle(self._attempt.claimed.id)

    def _success(self, result: str) -> Operation[store.MovedAndMade]:
        success = store.Success(self._attempt.claimed.id, self._attempt.claimed.attempt, result)
        followed = store.FollowedSuccess(success, self._follow_ups.submissions)
        return store.succeed_with_follow_ups([followed], holder=self._attempt.holder)

    def _fence(self) -> Operation[bool | None]:
        claimed = self._attempt.claimed
        return store.check_fence(claimed.id, holder=self._attempt.holder, attempt=claimed.attempt)

    def _check_locked(self, held: bool | None, until: float) -> None:
        """The success moved nothing: either the job is not ours any more, or somebody locks its row just now."""
        claimed = self._attempt.claimed
        if held is None:
            raise lease_lost(claimed.id, claimed.attempt)
        if time.monotonic() > until:
            raise Busy(
                f"the row of job {claimed.id} stayed locked for {LOCKED_S:g} s",
                "somebody else's transaction holds it",
                "everything was rolled back; the job is tried again",
            )


def _below(connection: object) -> object:
    """What an AsyncSession of SQLAlchemy's stands on, which sync code inside it is given."""
    return getattr(connection, "sync_session", connection)
