"""`LogFields`: the lines that a handler writes with `logging` say in which job, batch or delivery they were written.

It asks context variables, which the worker sets around each call of a handler: in the event loop, in the thread of a
plain handler, and in a child process. A thread that a handler starts itself has them if it copies the context, as
`asyncio.to_thread` does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar

from fencerow.core.store.running import running

# Each line of the log may have these; a filter gives all of them to every record, so that any format may name them.
FIELDS = ("job_id", "job", "attempt", "queue", "correlation_id")
EXTRA = "extra_"  # before the name of a field that a handler passes and that is taken
CORRELATION = "correlation-id"

# What is handled here, where it is not one job: called for each line.
handled: ContextVar[Callable[[], Mapping[str, object]] | None] = ContextVar("fencerow_handled", default=None)


class LogFields(logging.Filter):
    """Gives each record the fields of the job in whose handler it was made: `job_id`, `job`, `attempt`, `queue`, and
    the `correlation_id` of the job's headers.

        handler.addFilter(LogFields())
        handler.setFormatter(logging.Formatter("%(levelname)s %(message)s job=%(job)s %(job_id)s"))

    Outside of a job they are None. In a batch handler there are `job`, `jobs` (how many) and `job_ids` (the first ten);
    in the handler of a consumer `group`, `topic`, `event_id` and `delivery`. A field of such a name that a handler
    passes as `extra` is kept as `extra_job_id` and the like: a line says in which job it was written. Outside of
    handlers what a record has already is left as it is. No record is dropped. `fencerow worker` and `fencerow dev`
    put it on all handlers by themselves. Elsewhere put it on a handler, not on a logger: filters of loggers do not see
    the lines of the loggers below.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields; always true."""
        known = vars(record)
        if record.name.partition(".")[0] != "fencerow":
            for name, value in current().items():
                if known.setdefault(name, value) != value:
                    known[f"{EXTRA}{name}"], known[name] = known[name], value
        elif "job_id" not in known:  # else it says itself what it is about, another job perhaps
            for name, value in current().items():
                known.setdefault(name, value)
        for name in FIELDS:
            known.setdefault(name, None)
        return True


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
