"""An application whose processes write their spans to files: in each, the folder of FENCEROW_TEST_SPANS has one."""

from __future__ import annotations

import os
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from fencerow import App
from fencerow.traces import trace_jobs
from fencerow.web.webhooks.fan_out import deliver_webhooks

file = (Path(os.environ["TEST_SPANS"]) / f"{os.getpid()}.jsonl").open("w")
provider = TracerProvider()
provider.add_span_processor(
    SimpleSpanProcessor(ConsoleSpanExporter(out=file, formatter=lambda span: span.to_json(None) + "\n"))
)
app = App()
trace_jobs(app, provider)


@app.job(queue="orders")
async def order(number: int) -> None:
    await ship.asubmit(number)


@app.job(queue="parcels")
async def ship(number: int) -> None: ...


if os.environ.get("TEST_DELIVERS"):
    deliver_webhooks(app)
