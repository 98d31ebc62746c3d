"""In which job, batch or delivery this code runs: the lines that a handler writes with `logging` say so.

It asks context variables, which the worker sets around each call of a handler: in the event loop, in the thread of a
plain handler, and in a child process. A thread that a handler starts itself has them if it copies the context, as
`asyncio.to_thread` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar

from fencerow.core.store.running import running

CORRELATION = "correlation-id"

# What is handled here, where it is not one job: called for each line.
handled: ContextVar[Callable[[], Mapping[str, object]] | None] = ContextVar("fencerow_handled", default=None)


def current() -> Mapping[str, object]:
    """The fields of what is handled here; none outside of a handler."""
    attempt = running.get()
    if attempt is None:
        tell = handled.get()
        return {} if tell is None else tell()
    fields = {
        "job_id": attempt.job_id,
        "job": attempt.name,
        "attempt": attempt.attempt,
        "queue": attempt.queue,
    }
    correlation = (attempt.headers or {}).get(CORRELATION)
    return fields if correlation is None else {**fields, "correlation_id": correlation}
