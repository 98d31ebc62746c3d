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
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from fencerow.core.errors import WrongCall

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
