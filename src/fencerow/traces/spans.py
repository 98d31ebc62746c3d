"""`trace_jobs(app)`: a span for each submit and each run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import fencerow.traces.conventions as names
from fencerow.core.app.submission import Draft
from fencerow.core.worker.context import Job
from fencerow.core.worker.middleware import RunMiddleware
from fencerow.traces.around import check_installed, note_error, processed
from fencerow.traces.carrying import CORRELATION, TRACEPARENT, TRACESTATE, correlation
from fencerow.traces.conventions import PROCESS, SUBMIT, attributes_of

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import TracerProvider

    from fencerow.batches.item import BatchItem, BatchMiddleware


class Traceable(Protocol):
    """An app, as far as it is needed here."""

    def on_submit(self, generator: Callable[[Draft], Iterator[None]], /) -> object: ...

    def on_run(self, middleware: RunMiddleware, /) -> object: ...

    def on_batch(self, middleware: BatchMiddleware, /) -> object: ...


def trace_jobs(app: Traceable, provider: TracerProvider | None = None) -> None:
    """Trace what this app submits and runs. Call it once, where the app is made, before its other middleware.

    A submit is a span `submit NAME`, and a run a span `process NAME` in the same trace, linked to it; NAME is that of
    the job. `provider`: where spans go, by default to the global one.

    Raises:
        MissingExtra: opentelemetry-api is not installed.
    """
    check_installed()
    traced = _Traced(provider)
    app.on_submit(traced.submitted)
    app.on_run(traced.ran)
    app.on_batch(traced.ran_together)


class _Traced:
    """The middleware of one app."""

    def __init__(self, provider: TracerProvider | None) -> None:
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider = provider
        self._trace = trace
        self._propagator = TraceContextTextMapPropagator()

    def submitted(self, draft: Draft) -> Iterator[None]:
        """Around a submit. The job carries this span's context, so its runs belong to the same trace.

        The span is nobody's parent here: of several submits in one call none belongs to another.
        """
        found = correlation.get()
        if found is not None:
            draft.headers.setdefault(CORRELATION, found)
        attributes = attributes_of(SUBMIT, draft.queue, draft.headers)
        attributes |= {names.MESSAGE_ID: draft.id, names.JOB: draft.name}
        span = self._trace.get_tracer("fencerow", tracer_provider=self._provider).start_span(
            f"{SUBMIT} {draft.name}", self._parent(draft), self._trace.SpanKind.PRODUCER, attributes
        )
        if span.get_span_context().is_valid:
            draft.headers.pop(TRACESTATE, None)
            self._propagator.inject(draft.headers, self._trace.set_span_in_context(span))
        try:
            yield
        except BaseException as error:
            note_error(span, error)
            raise
        finally:
            span.end()

    async def ran(self, job: Job, call_next: Callable[[], Awaitable[Any]]) -> Any:
        """Around a run of one job."""
        headers = job.headers
        attributes = attributes_of(PROCESS, job.queue, headers)
        attributes |= {names.MESSAGE_ID: job.id, names.JOB: job.name, names.ATTEMPT: job.attempt}
        with processed(f"{PROCESS} {job.name}", [headers], attributes, self._provider):
            return await call_next()

    async def ran_together(
        self, items: Sequence[BatchItem[Any, Any]], call_next: Callable[[], Awaitable[None]]
    ) -> None:
        """Around a call for several jobs: one span, linked to the submit of each."""
        first = items[0]
        attributes = attributes_of(PROCESS, None, {})
        attributes |= {names.JOB: first.name, names.BATCH_COUNT: len(items)}
        headers = [each.headers for each in items]
        with processed(f"{PROCESS} {first.name}", headers, attributes, self._provider):
            await call_next()

    def _parent(self, draft: Draft) -> Context | None:
        """The current span; where there is none, what came with the submit, as from the caller of the gateway."""
        if self._trace.get_current_span().get_span_context().is_valid or TRACEPARENT not in draft.headers:
            return None
        return self._propagator.extract(draft.headers)
