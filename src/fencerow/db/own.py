"""A transaction on a session that the user has made or makes for it: begun, watched and committed by us."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from importlib.util import find_spec

from fencerow.db.borrow import is_django
from fencerow.db.engine import AsyncSession, Engine, Session
from fencerow.db.errors import FencerowError, UnusableConnection


def own_session(
    given: object, engine: Engine, refusal: Callable[[], FencerowError]
) -> AbstractContextManager[Session]:
    """What `engine.session()` is, on a SQLAlchemy Session: `given`, or what it makes; or on Django's connection.

    `refusal` makes the error for code that ends the transaction by hand, or would write beside it.

    Raises:
        UnusableConnection: it is no such session, cannot begin a transaction, or speaks to another database.
    """
    if is_django(given):
        from fencerow.db.adapters.own_django import opened as opened_of_django

        return opened_of_django(given, engine)
    _check_installed()
    from fencerow.db.adapters.own_sqlalchemy import opened

    return opened(given, engine, refusal)


def own_asession(
    given: object, engine: Engine, refusal: Callable[[], FencerowError]
) -> AbstractAsyncContextManager[AsyncSession]:
    """`own_session` on an AsyncSession."""
    if is_django(given):
        raise UnusableConnection(
            "session= got Django's connection in an async handler",
            "Django's transactions are of plain code",
            "write a plain `def` handler: it runs in a thread of the worker",
        )
    _check_installed()
    from fencerow.db.adapters.own_sqlalchemy import aopened

    return aopened(given, engine, refusal)


def _check_installed() -> None:
    if find_spec("sqlalchemy") is None:  # an optional extra
        raise UnusableConnection(
            "session= was given, and SQLAlchemy is not installed",
            "it takes a SQLAlchemy sessionmaker or session, or Django's connection",
            "install fencerow[sqlalchemy]",
        )
