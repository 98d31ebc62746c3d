"""Traces for OpenTelemetry: one trace goes from the submit of a job over its runs to all that they cause.

The guide: docs/guide/traces.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.traces.carrying import current_headers as current_headers
    from fencerow.traces.processing import processing as processing
    from fencerow.traces.spans import trace_jobs as trace_jobs

__all__ = ["current_headers", "processing", "trace_jobs"]

__getattr__ = lazily(
    __name__,
    {
        "current_headers": "fencerow.traces.carrying",
        "processing": "fencerow.traces.processing",
        "trace_jobs": "fencerow.traces.spans",
    },
)
