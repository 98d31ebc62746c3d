"""Sync verbs in a test that runs in an event loop: in a thread, for helpers that cannot await."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def plainly(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call it where no event loop runs, in this context, and wait for the answer."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(contextvars.copy_context().run, lambda: call(*args, **kwargs)).result()
