"""Traces for OpenTelemetry: one trace goes from the submit of a job over its runs to all that they cause.

The guide: docs/guide/traces.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.traces.around import processing as processing
    from fencerow.traces.around import publishing as publishing
    from fencerow.traces.carrying import current_headers as current_headers
    from fencerow.traces.spans import trace_jobs as trace_jobs

__all__ = ["current_headers", "processing", "publishing", "trace_jobs"]

__getattr__ = lazily(
    __name__,
    {
        "current_headers": "fencerow.traces.carrying",
        "processing": "fencerow.traces.around",
        "publishing": "fencerow.traces.around",
        "trace_jobs": "fencerow.traces.spans",
    },
)
