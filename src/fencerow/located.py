"""How operations and verbs of wings run: in a transaction of their own, or in the one that the user has open.

Where they run says `core/locator.py`.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from fencerow.core.locator import Locator, acheck_tables, check_tables
from fencerow.db import run as loops
from fencerow.db.blocking import refuse_in_loop
from fencerow.db.borrow import borrowed
from fencerow.db.run import Operation, Pause, Request, Runner, WakeUp

T = TypeVar("T")


def run(place: Locator, operation: Operation[T], connection: object | None = None) -> T:
    """Run an operation on `connection`, inside the transaction that is open there, or else in one of its own.

    On a lent connection a refusal or an error costs only our part, never the user's transaction.

    Raises:
        UnusableConnection: the connection is closed, busy, failed, async, or to another database.
        RetryTransaction: roll the transaction back and run all of it again.
        BlockingCall: without a connection, inside a running event loop.
    """
    if connection is None:
        refuse_in_loop()
        return place.engine.run(operation)
    return borrowed(connection, place.engine).run(operation)


async def arun(place: Locator, operation: Operation[T], connection: object | None = None) -> T:
    """`run` for async code; the connection is an async one."""
    if connection is None:
        return await place.engine.arun(operation)
    return await borrowed(connection, place.engine).arun(operation)


@dataclass(frozen=True, slots=True)
class CheckTables:
    """A request of a procedure in a place: `check_tables`."""


LocatorRequest = Request | CheckTables
LocatorProcedure = Generator[LocatorRequest | Pause, Any, T]


class LocatorVerbs:
    """Verbs that run in a place: in the transaction that is open on the caller's `connection`, or in their own.

    Each has an async twin with an `a` before its name. A refusal or an error costs only our part of a lent
    connection's transaction.

    Every verb raises, besides what is said at each:
        UnusableConnection: the connection is closed, busy, failed, of the other kind, or to another database.
        RetryTransaction: roll the transaction back and run all of it again.
        BlockingCall: without a connection, inside a running event loop.
    """

    def __init__(self, place: Locator) -> None:
        self._place = place

    def _run(self, procedure: LocatorProcedure[T], connection: object | None = None) -> T:
        if connection is None:
            refuse_in_loop()
        return loops.run(procedure, partial(self._answer, self._runs_on(connection)))

    async def _arun(self, procedure: LocatorProcedure[T], connection: object | None = None) -> T:
        return await loops.arun(procedure, partial(self._aanswer, self._runs_on(connection)))

    def _runs_on(self, connection: object | None) -> Runner:
        return self._place.engine if connection is None else borrowed(connection, self._place.engine)

    def _answer(self, runner: Runner, request: LocatorRequest) -> Any:
        if isinstance(request, WakeUp):
            return self._place.engine.wake(request.messages)
        if isinstance(request, CheckTables):
            return check_tables(self._place)
        return runner.run(request)

    async def _aanswer(self, runner: Runner, request: LocatorRequest) -> Any:
        if isinstance(request, WakeUp):
            return self._place.engine.wake(request.messages)
        if isinstance(request, CheckTables):
            return await acheck_tables(self._place)
        return await runner.arun(request)
