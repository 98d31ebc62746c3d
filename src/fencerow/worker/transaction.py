"""`job.transaction()`: the handler's effects and the job's success in one commit.

The transaction stays open until the handler returns; then the fenced success is written in it and it
is committed. A stale attempt's success changes no row: everything is rolled back and it is told.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, ExitStack
from types import TracebackType
from typing import Any

from fencerow.db.engine import AsyncSession, Engine, Session
from fencerow.db.statement import Operation
from fencerow.errors import TransactionMisuse
from fencerow.store import store
from fencerow.store.finish import Moved
from fencerow.worker.attempt import Attempt, lease_lost


class JobTransaction:
    """A context manager, sync and async. Leaving the block keeps the transaction open; an error ends it."""

    def __init__(self, engine: Engine, attempt: Attempt) -> None:
        self._engine = engine
        self._attempt = attempt
        self._sync: ExitStack | None = None
        self._async: AsyncExitStack | None = None
        self._session: Session | None = None
        self._asession: AsyncSession | None = None
        self._entered = False
        self._committing = False

    @property
    def is_open(self) -> bool:
        """Whether something waits to be committed with the success."""
        return self._session is not None or self._asession is not None

    @property
    def in_doubt(self) -> bool:
        """Whether the commit was sent: after an error it may have happened or not."""
        return self._committing

    def __enter__(self) -> Any:
        self._enter_once()
        stack = ExitStack()
        self._session = stack.enter_context(self._engine.session())
        self._sync = stack
        return self._session.connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.roll_back(error)

    async def __aenter__(self) -> Any:
        self._enter_once()
        stack = AsyncExitStack()
        self._asession = await stack.enter_async_context(self._engine.asession())
        self._async = stack
        return self._asession.connection

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            await self.aroll_back(error)

    def commit(self, result: str) -> Moved:
        """Write the success and commit, in the thread that opened it.

        Raises:
            LeaseLost: this attempt no longer holds the job; everything was rolled back.
        """
        assert self._session is not None and self._sync is not None
        try:
            moved = self._session.run(self._success(result))
            self._judge(moved)
        except BaseException as error:
            self.roll_back(error)
            raise
        self._committing = True
        self._session, stack = None, self._sync
        stack.close()
        return moved[0]

    async def acommit(self, result: str) -> Moved:
        """The same for an async handler."""
        assert self._asession is not None and self._async is not None
        try:
            moved = await self._asession.arun(self._success(result))
            self._judge(moved)
        except BaseException as error:
            await self.aroll_back(error)
            raise
        self._committing = True
        self._asession, stack = None, self._async
        await stack.aclose()
        return moved[0]

    def roll_back(self, error: BaseException) -> None:
        """Undo everything. Harmless when it is over already."""
        if self._session is not None and self._sync is not None:
            self._session, stack = None, self._sync
            _quietly(lambda: stack.__exit__(type(error), error, error.__traceback__), error)

    async def aroll_back(self, error: BaseException) -> None:
        """The same for an async handler."""
        if self._asession is not None and self._async is not None:
            self._asession, stack = None, self._async
            try:
                await stack.__aexit__(type(error), error, error.__traceback__)
            except Exception as other:
                if other is not error:
                    error.add_note(f"rolling back also failed: {type(other).__name__}: {other}")

    def _success(self, result: str) -> Operation[list[Moved]]:
        outcome = store.Success(self._attempt.claimed.id, self._attempt.claimed.attempt, result)
        return store.succeed([outcome], holder=self._attempt.holder)

    def _judge(self, moved: list[Moved]) -> None:
        if not moved:
            raise lease_lost(self._attempt.claimed.id, self._attempt.claimed.attempt)

    def _enter_once(self) -> None:
        if self._entered:
            raise TransactionMisuse(
                "job.transaction() was entered twice", "it is one commit", "do all writes in one block"
            )
        self._entered = True


def _quietly(leave: Any, error: BaseException) -> None:
    """Leave a session that is being rolled back: a second error must not hide the first."""
    try:
        leave()
    except Exception as other:
        if other is not error:
            error.add_note(f"rolling back also failed: {type(other).__name__}: {other}")
