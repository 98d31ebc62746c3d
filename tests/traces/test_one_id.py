"""One id finds every line of a request: from the gateway over the job and what it submits to the webhook."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from fencerow import App
from fencerow.events import Event
from fencerow.logs import LogFields
from fencerow.testing import adrain
from fencerow.traces import processing, publishing, trace_jobs
from fencerow.web.gateway.asgi import Gateway
from tests.web.gateway.conftest import Door, calling
from tests.web.webhooks.stage import app_at, hooks_of, receiving

log = logging.getLogger("shop")


class Lines(logging.Handler):
    """Keeps what was written in jobs, by the correlation id."""

    def __init__(self) -> None:
        super().__init__()
        self.addFilter(LogFields())
        self.found: list[tuple[str | None, str | None]] = []

    def emit(self, record: logging.LogRecord) -> None:
        known = vars(record)
        if known["job"] is not None:
            self.found.append((known["job"], known["correlation_id"]))


def declared(app: App) -> None:
    """`order` submits `ship`, and both write a line."""
    trace_jobs(app, TracerProvider())

    @app.job(queue="mail")
    async def ship(number: int) -> None:
        log.warning("shipped %d", number)

    @app.job(queue="mail")
    async def order(number: int) -> None:
        log.warning("ordered %d", number)
        await ship.asubmit(number)


async def test_the_id_of_a_request_stands_in_every_line_from_the_gateway_to_the_webhook(
    migrated_path: Path,
) -> None:
    lines = Lines()
    logging.getLogger().addHandler(lines)
    try:
        with receiving() as receiver:
            async with app_at(f"sqlite:///{migrated_path}", receiver.url) as app:
                declared(app)
                await hooks_of(app).aadd("shop", receiver.url)
                async with calling(Gateway(app, authorize=Door())) as http:
                    answer = await http.post("/v1/jobs", json={"job": "order", "args": {"number": 7}})
                await adrain(app)
    finally:
        logging.getLogger().removeHandler(lines)

    asked = answer.headers["x-request-id"]
    assert {job for job, _ in lines.found} >= {"order", "ship"}
    assert {correlation for _, correlation in lines.found} == {asked}
    told = [each.document["data"] for each in receiver.got]
    assert {each["name"] for each in told} == {"order", "ship"}
    assert {each["headers"]["correlation-id"] for each in told} == {asked}


def test_who_processes_an_event_goes_on_from_its_publish() -> None:
    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracer = provider.get_tracer("test")
    with (
        tracer.start_as_current_span("request") as request,
        publishing("order.paid", provider=provider) as headers,
    ):
        pass
    event = SimpleNamespace(topic="order.paid", headers=headers, id=1, group="shop")
    with processing(cast(Event, event), provider=provider):
        pass

    published, _request, processed = kept.get_finished_spans()
    assert (published.name, published.kind) == ("publish order.paid", trace.SpanKind.PRODUCER)
    assert published.parent is not None and published.parent.span_id == request.get_span_context().span_id
    assert processed.parent is not None and published.context is not None
    assert processed.parent.span_id == published.context.span_id
