"""A handler whose call returned a coroutine or a generator: nothing of its body has run, so its work is not done."""

from __future__ import annotations

from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

from fencerow.core.errors import InvalidPayload

UNRUN = (CoroutineType, GeneratorType, AsyncGeneratorType)


def run_whole(value: Any, what: str = "the handler") -> Any:
    """What a handler returned, if it is a value at all.

    Raises:
        InvalidPayload: nobody has awaited or read it. It may be an async function behind a decorator of plain
            functions, which the declaration cannot tell from one that runs it (`asyncio.run`).
    """
    if not isinstance(value, UNRUN):
        return value
    kind = (
        "a coroutine that was not awaited"
        if isinstance(value, CoroutineType)
        else "a generator that was not read"
    )
    if not isinstance(value, AsyncGeneratorType):
        value.close()  # else Python would warn of it at some other place
    raise InvalidPayload(
        f"{what} returned {kind}, so nothing of it has run",
        "a decorator may have made a plain function of an async one",
        "let the decorator's inner function be async and await the handler",
    )
