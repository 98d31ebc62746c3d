"""Verbs for async code of what only a thread can do: a migration runs on sync connections."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from fencerow.core.answering import answering
from fencerow.core.verb import as_twin

P = ParamSpec("P")
X = TypeVar("X")
T = TypeVar("T")


def threaded(
    verb: Callable[Concatenate[X, P], T],
) -> Callable[Concatenate[X, P], Coroutine[Any, Any, T]]:
    """The twin for async code of what only a thread can do. It goes on there if its caller is cancelled."""
    answers = answering(verb)

    async def call(self: X, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(answers, self, *args, **kwargs)

    twin = as_twin(call, verb)
    text = f"`{verb.__name__}` for async code. {inspect.cleandoc(verb.__doc__ or '')}"
    twin.__doc__ = f"{text}\n\nIt runs in a thread; cancelling the caller does not stop it."
    return twin
