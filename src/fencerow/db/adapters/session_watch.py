"""Sees to it that what a SQLAlchemy session does stays in the one transaction that was begun on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, event
from sqlalchemy.orm import Session

from fencerow.db.adapters.frame import ConnectionStanding, no_transaction
from fencerow.db.adapters.lent_sqlalchemy import IDLE, lent, misuse_explained, transaction_status
from fencerow.db.borrow import innermost
from fencerow.db.engine import Engine
from fencerow.db.errors import FencerowError

Refusal = Callable[[], FencerowError]


class SessionWatch:
    """The transaction that is begun here on a session, and what may happen to it.

    `refusal` makes the error for code that ends it, or writes beside it. `sent` tells that COMMIT was sent.
    """

    def __init__(self, session: Session, engine: Engine, refusal: Refusal) -> None:
        self.sent = False
        self._refusal = refusal
        self._may_commit = False
        self._session = session
        session.begin()
        with misuse_explained("SQLAlchemy session"):
            self._connection = session.connection()
        self._root = session.get_transaction()
        if lent(session, innermost(engine)).standing() is ConnectionStanding.ALONE:
            raise no_transaction("a transaction of a session in autocommit")
        self._listeners: tuple[tuple[Any, str, Callable[..., None]], ...] = (
            (session, "after_begin", self._after_begin),
            (session, "before_commit", self._before_commit),
            (self._connection, "commit", self._on_commit),
        )
        for listener in self._listeners:
            event.listen(*listener)

    @property
    def driver(self) -> Any:
        """The driver's own connection."""
        return self._connection.connection.driver_connection

    def is_open(self) -> bool:
        """Whether the transaction that was begun is open still: no other one, and not ended behind the session."""
        root = self._session.get_transaction()
        if root is not self._root or root is None or not root.is_active or self._connection.closed:
            return False
        driver = self.driver
        return bool(getattr(driver, "in_transaction", False)) or (
            not hasattr(driver, "in_transaction") and transaction_status(driver) != IDLE
        )

    def flush(self) -> None:
        """Send what the session keeps back.

        Raises:
            PendingRollbackError: an earlier flush failed and nobody said so; it tells which.
        """
        self._session.flush()
        if not self._session.is_active:
            self._session.connection()

    def let_commit(self) -> None:
        """From now on a commit is ours."""
        self._may_commit = True

    def end(self) -> None:
        """Let go of the session."""
        for listener in self._listeners:
            if event.contains(*listener):
                event.remove(*listener)

    def _after_begin(self, _session: Session, _transaction: object, connection: Connection) -> None:
        """Savepoints begin on the same connection. What begins on another one is another transaction."""
        if connection is not self._connection or self._session.get_transaction() is not self._root:
            raise self._refusal()

    def _before_commit(self, session: Session) -> None:
        """Refused before anything was done, so that the session stays as it is. Savepoints are the handler's."""
        if not self._may_commit and not session.in_nested_transaction():
            raise self._refusal()

    def _on_commit(self, _connection: Connection) -> None:
        """Whoever commits, and on whatever way to it."""
        if not self._may_commit:
            raise self._refusal()
        self.sent = True
