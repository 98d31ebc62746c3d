"""Calls of declared jobs, and how many of them are stored at once."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Coroutine, Iterable, Iterator, Sequence
from typing import Any, Final, Generic, TypeVar

from fencerow.core.app.options import SubmitOptions
from fencerow.core.app.submission import Recipe
from fencerow.core.errors import InvalidInput
from fencerow.core.model.change import NewArguments
from fencerow.core.model.submission import PreparedCall
from fencerow.core.model.value import SET_ENCODER

NOTHING: Final = SubmitOptions()
R = TypeVar("R")  # what the job results in
R_co = TypeVar("R_co", covariant=True)

CHUNK_ROWS = 1_000
CHUNK_BYTES = 4 * 1024 * 1024


class Call(PreparedCall, Generic[R_co], frozen=True, gc=False):
    """One call of a declared job, checked and encoded, not yet submitted. Made by `job.call(...)`."""

    recipe: Recipe
    args: bytes


def checked(call: Call[R]) -> Call[R]:
    """The call, if it is one: a declared job that is called runs at once and returns its result instead.

    Raises:
        InvalidInput: it is none.
    """
    if isinstance(call, Call):
        return call
    raise _no_call(call)


def under(recipe: Recipe, call: Call[R]) -> Call[R]:
    """The call with the options of `using(...)` that it is submitted through; where there are none, as it is.

    Raises:
        InvalidInput: it is of another job, or was made with other options, so that one of the two would be ignored.
    """
    made, options = checked(call).recipe, recipe.options
    if made is recipe or options == NOTHING:
        return call
    if made.declaration is not recipe.declaration:
        why = f"a call of {made.declaration.name!a} was given to using(...) of {recipe.declaration.name!a}"
    elif made.options == options and _bytes_of(made.options) == _bytes_of(options):  # 1 == True
        return call
    elif made.options != NOTHING:
        why = "the call was made with other options than those of using(...) that it is submitted through"
    else:
        return Call(recipe, call.args)
    raise InvalidInput(
        why, "only one of the two could count", "pass it to app.submit_many(...): its own options count there"
    )


def _bytes_of(options: SubmitOptions) -> bytes:
    return SET_ENCODER.encode(options.metadata)


def stored_arguments(call: Call[Any]) -> NewArguments:
    """The arguments of a call as they are stored, with the version of their form."""
    recipe = call.recipe

    def column_of(name: str, args: str) -> Any:
        return recipe.column_of(name, args.encode())

    handler = recipe.declaration.handler

    def packed(job_id: str) -> str:
        return recipe.packed_inside(job_id, call.args).decode()

    def opened(job_id: str, stored: str, version: int) -> str:
        return handler.plain_arguments(job_id, stored.encode(), version).decode()

    return NewArguments(call.args.decode(), handler.arguments.version, column_of, packed, opened)


def _no_call(given: object) -> InvalidInput:
    if isinstance(given, Coroutine):
        given.close()
    elif callable(given):
        return InvalidInput(
            f"a value of type {type(given).__name__} was given to be submitted",
            "a call of a job is expected, which has its arguments",
            "write job.submit(...), or pass job.call(...)",
        )
    return InvalidInput(
        f"a value of type {type(given).__name__} was given to be submitted",
        "`job(...)` runs the handler here; only `job.call(...)` makes a call to submit",
        "write job.call(...) here, or job.submit(...)",
    )


def connection_of(calls: Sequence[Call[Any]]) -> Any:
    """The one connection that all calls name, or none of them."""
    first = calls[0].recipe.options.connection
    if any(call.recipe.options.connection is not first for call in calls):
        raise InvalidInput(
            "the calls name different connections",
            "all calls of a chunk are in one transaction",
            "submit the calls of each connection separately",
        )
    return first


def chunks(calls: Iterable[Call[R]]) -> Iterator[list[Call[R]]]:
    chunk: list[Call[R]] = []
    size = 0
    for call in calls:
        size += len(checked(call).args)
        if chunk and (len(chunk) >= CHUNK_ROWS or size > CHUNK_BYTES):
            yield chunk
            chunk, size = [], len(call.args)
        chunk.append(call)
    if chunk:
        yield chunk


async def achunks(calls: Iterable[Call[R]] | AsyncIterable[Call[R]]) -> AsyncIterator[list[Call[R]]]:
    if isinstance(calls, Iterable):
        for few in chunks(calls):
            yield few
        return
    chunk: list[Call[R]] = []
    size = 0
    async for call in calls:
        size += len(checked(call).args)
        if chunk and (len(chunk) >= CHUNK_ROWS or size > CHUNK_BYTES):
            yield chunk
            chunk, size = [], len(call.args)
        chunk.append(call)
    if chunk:
        yield chunk
