"""What travels in headers so that a trace goes on elsewhere. Importing it loads no library."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
CORRELATION: Final = "correlation-id"
CARRIED: Final = (TRACEPARENT, TRACESTATE, CORRELATION)

# That of the job that runs here: what it submits belongs to the same request.
correlation: ContextVar[str | None] = ContextVar("fencerow_correlation", default=None)


def carried(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Of the headers of a job those that what follows from it should have, too."""
    return {name: headers[name] for name in CARRIED if headers and name in headers}


def current_headers() -> dict[str, str]:
    """The headers by which the trace of this place goes on elsewhere, as for `publish(headers=...)`; empty without one.

    They hold `traceparent` and `tracestate` of the current span, and the `correlation-id` of the job that runs here.
    """
    headers = {} if (found := correlation.get()) is None else {CORRELATION: found}
    if "opentelemetry.trace" in sys.modules:  # else nobody can have begun a span
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        TraceContextTextMapPropagator().inject(headers)
    return headers


def sent_along(headers: Mapping[str, str] | None) -> dict[str, str]:
    """What a request to somebody else has of a trace: that of the current span, or else of the job's own headers.

    The `tracestate` stays here: it may hold what is nobody's business.
    """
    found = current_headers().get(TRACEPARENT) or (headers or {}).get(TRACEPARENT)
    return {} if found is None else {TRACEPARENT: found}
