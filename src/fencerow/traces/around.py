"""A span around what processes something that came from elsewhere: one job, several together, or an event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import fencerow.traces.conventions as names
from fencerow.core.errors import MissingExtra
from fencerow.core.model.control import Retry, Snooze
from fencerow.traces.carrying import CORRELATION, correlation, current_headers
from fencerow.traces.conventions import PROCESS, PUBLISH, Attributes, attributes_of

if TYPE_CHECKING:
    from opentelemetry.trace import Span, TracerProvider

    from fencerow.events.event import Event

# Raised on purpose: the attempt is over, but nothing went wrong that nobody foresaw.
FORESEEN = (Retry, Snooze)
Headers = Mapping[str, str]


def check_installed() -> None:
    """Raises:
    MissingExtra: opentelemetry-api is not installed.
    """
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.trace") is None:
        raise MissingExtra(
            "traces need opentelemetry-api",
            "it comes with an extra, and is not installed",
            "pip install 'fencerow[otel]', and the SDK that exports them",
        )


@contextmanager
def processing(event: Event, *, provider: TracerProvider | None = None) -> Iterator[Span]:
    """A span around the handling of an event, in the trace of its publisher: `with processing(event): ...`.

    `provider`: where the span goes, by default to the global one.

    Raises:
        MissingExtra: opentelemetry-api is not installed.
    """
    check_installed()
    attributes = attributes_of(PROCESS, event.topic, event.headers)
    attributes |= {names.MESSAGE_ID: str(event.id), names.GROUP: event.group}
    with processed(f"{PROCESS} {event.topic}", [event.headers], attributes, provider) as span:
        yield span


@contextmanager
def publishing(topic: str, *, provider: TracerProvider | None = None) -> Iterator[dict[str, str]]:
    """A span around a publish: `with publishing(TOPIC) as headers: publish(app, TOPIC, data, headers=headers)`.

    It belongs to the trace of this place; whoever processes the event goes on from it. `provider`: where the span goes,
    by default to the global one.

    Raises:
        MissingExtra: opentelemetry-api is not installed.
    """
    check_installed()
    from opentelemetry import trace

    attributes = attributes_of(PUBLISH, topic, current_headers())
    tracer = trace.get_tracer("fencerow", tracer_provider=provider)
    span = tracer.start_span(f"{PUBLISH} {topic}", kind=trace.SpanKind.PRODUCER, attributes=attributes)
    with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
        try:
            yield current_headers()
        except BaseException as error:
            note_error(span, error)
            raise


@contextmanager
def processed(
    name: str, headers: Sequence[Headers], attributes: Attributes, provider: TracerProvider | None
) -> Iterator[Span]:
    """A current span that is linked to where each of these came from. One that came alone is continued, too."""
    from opentelemetry import trace
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    extract = TraceContextTextMapPropagator().extract
    contexts = [extract(each, Context()) for each in headers]
    origins = [trace.get_current_span(each).get_span_context() for each in contexts]
    span = trace.get_tracer("fencerow", tracer_provider=provider).start_span(
        name,
        contexts[0] if len(contexts) == 1 else Context(),
        trace.SpanKind.CONSUMER,
        attributes,
        [trace.Link(each) for each in origins if each.is_valid],
    )
    only = headers[0].get(CORRELATION) if len(headers) == 1 else None
    mark = correlation.set(only)
    try:
        with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            try:
                yield span
            except BaseException as error:
                note_error(span, error)
                raise
    finally:
        correlation.reset(mark)


def note_error(span: Span, error: BaseException) -> None:
    """Say on the span what was raised; that it went wrong, if nobody meant it."""
    from opentelemetry.trace import Status, StatusCode

    if isinstance(error, FORESEEN):
        span.add_event(type(error).__name__.lower(), {"reason": str(error)})
        return
    span.record_exception(error)
    span.set_attribute(names.ERROR_TYPE, type(error).__qualname__)
    span.set_status(Status(StatusCode.ERROR, str(error)[:200]))
