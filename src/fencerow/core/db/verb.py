"""A verb is written once, as the procedure that does it; what callers get is the verb and its twin for async code.

    @verb
    def get(self, ref: Ref) -> Procedure[JobRecord]:
        \"\"\"The job as it stands.\"\"\"
        return (yield from reading(ref))

    aget = averb(get)

Both have the parameters of the procedure and return what it returns: for type checkers, for editors and for `help()`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
X = TypeVar("X")


class HasVerbs(Protocol):
    """What a class with verbs must have: how it runs a procedure, in this thread or in this event loop.

    `connection` is what the verb was given under this name: the caller's own, in whose transaction it runs.
    """

    def _run(self, procedure: Generator[Any, Any, T], connection: object | None = None) -> T: ...

    async def _arun(self, procedure: Generator[Any, Any, T], connection: object | None = None) -> T: ...


S = TypeVar("S", bound=HasVerbs)


def verb(
    procedure: Callable[Concatenate[S, P], Generator[Any, Any, T]],
) -> Callable[Concatenate[S, P], T]:
    """The verb that runs this procedure in the caller's thread."""

    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(  # pyright: ignore[reportPrivateUsage]
            procedure(self, *args, **kwargs), kwargs.get("connection")
        )

    # `help()` and `inspect.signature` read the procedure's own; nothing but what comes back differs.
    procedure.__annotations__["return"] = _result(procedure.__annotations__["return"])
    return _named(call, procedure, procedure.__name__)


def averb(
    verb: Callable[Concatenate[S, P], T],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """The twin of a verb for async code: the same procedure, run in the caller's event loop."""
    procedure: Callable[..., Generator[Any, Any, T]] = verb.__wrapped__  # type: ignore[attr-defined]

    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._arun(  # pyright: ignore[reportPrivateUsage]
            procedure(self, *args, **kwargs), kwargs.get("connection")
        )

    return _as_twin(call, procedure)


def threaded(
    verb: Callable[Concatenate[X, P], T],
) -> Callable[Concatenate[X, P], Coroutine[Any, Any, T]]:
    """The twin for async code of what only a thread can do. It goes on there if its caller is cancelled."""

    async def call(self: X, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(verb, self, *args, **kwargs)

    return _as_twin(call, verb)


F = TypeVar("F", bound=Callable[..., Any])


def _as_twin(call: F, verb: Callable[..., object]) -> F:
    twin = _named(call, verb, f"a{verb.__name__}")
    twin.__doc__ = f"`{verb.__name__}` for async code. {verb.__doc__ or ''}".strip()
    return twin


def _named(call: F, like: Callable[..., object], name: str) -> F:
    """The call with the parameters and the text of another, under this name.

    The code has the name too, so that tracebacks, profiles and the refusal inside an event loop tell verbs apart.
    """
    wraps(like)(call)
    call.__annotations__ = like.__annotations__
    call.__name__ = name
    call.__qualname__ = ".".join([*like.__qualname__.split(".")[:-1], name])
    call.__code__ = call.__code__.replace(co_name=name, co_qualname=call.__qualname__)
    return call


def _result(annotation: str) -> str:
    """`T` of the text `Procedure[T]`."""
    _, _, result = annotation.partition("[")
    return result[:-1]
