"""A verb is written once, as the procedure that does it; what callers get is the verb and its twin for async code.

    @verb
    def get(self, ref: Ref) -> Procedure[JobRecord]:
        \"\"\"The job as it stands.\"\"\"
        return (yield from reading(ref))

    aget = averb(get)

Both have the parameters of the procedure and return what it returns: for type checkers, for editors and for `help()`.
The procedure is a generator, so that a traceback names it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from fencerow.core.errors import WrongCall
from fencerow.core.locator import Locator, acheck_tables, check_tables
from fencerow.db.blocking import refuse_in_loop
from fencerow.db.borrow import borrowed
from fencerow.db.run import Pause, Request, Runner, WakeUp, arun, run

P = ParamSpec("P")
T = TypeVar("T")
X = TypeVar("X")


class HasVerbs(Protocol):
    """What a class with verbs must have: how it runs a procedure, in this thread or in this event loop.

    `connection` is what the verb was given under this name: the caller's own, in whose transaction it runs.
    """

    def _run(self, procedure: Generator[Any, Any, T], connection: object | None = None) -> T: ...

    def _arun(
        self, procedure: Generator[Any, Any, T], connection: object | None = None
    ) -> Coroutine[Any, Any, T]: ...


S = TypeVar("S", bound=HasVerbs)


def verb(
    procedure: Callable[Concatenate[S, P], Generator[Any, Any, T]],
) -> Callable[Concatenate[S, P], T]:
    """The verb that runs this procedure in the caller's thread."""

    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            begun = procedure(self, *args, **kwargs)
        except TypeError as error:  # nothing of it has run
            raise _misfit(procedure, procedure.__name__, (self, *args), kwargs) or error from None
        return self._run(begun, kwargs.get("connection"))  # pyright: ignore[reportPrivateUsage]

    # `help()` and `inspect.signature` read the procedure's own; nothing but what comes back differs.
    procedure.__annotations__["return"] = _result(procedure.__annotations__["return"])
    return _named(call, procedure, procedure.__name__)


def averb(
    verb: Callable[Concatenate[S, P], T],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """The twin of a verb for async code: the same procedure, run in the caller's event loop."""
    procedure: Callable[..., Generator[Any, Any, T]] = verb.__wrapped__  # type: ignore[attr-defined]

    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            begun = procedure(self, *args, **kwargs)
        except TypeError as error:  # nothing of it has run
            raise _misfit(procedure, f"a{procedure.__name__}", (self, *args), kwargs) or error from None
        return await self._arun(begun, kwargs.get("connection"))  # pyright: ignore[reportPrivateUsage]

    return as_twin(call, procedure)


F = TypeVar("F", bound=Callable[..., Any])


def as_twin(call: F, verb: Callable[..., object]) -> F:
    """The call as the twin of a verb: with its parameters, its text, and its name after an `a`."""
    twin = _named(call, verb, f"a{verb.__name__}")
    twin.__doc__ = f"`{verb.__name__}` for async code. {verb.__doc__ or ''}".strip()
    return twin


def _named(call: F, like: Callable[..., object], name: str) -> F:
    """The call with the parameters and the text of another, under this name."""
    wraps(like)(call)
    call.__annotations__ = like.__annotations__
    call.__name__ = name
    call.__qualname__ = ".".join([*like.__qualname__.split(".")[:-1], name])
    return call


def _misfit(
    procedure: Callable[..., Any], name: str, given: Sequence[object], named: Mapping[str, object]
) -> WrongCall | None:
    from fencerow.core.model.misfit import misfit  # who writes no wrong call never loads it

    return misfit(procedure, f"{name}()", given, named)


def _result(annotation: str) -> str:
    """`T` of the text `Procedure[T]`."""
    _, _, result = annotation.partition("[")
    return result[:-1]


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
        return run(procedure, partial(self._answer, self._runs_on(connection)))

    async def _arun(self, procedure: LocatorProcedure[T], connection: object | None = None) -> T:
        return await arun(procedure, partial(self._aanswer, self._runs_on(connection)))

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
