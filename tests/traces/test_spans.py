"""Spans of submits and runs: their kinds, their links, and one trace over all that a job causes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from fencerow import App, Config, Job, Retry
from fencerow.batches import BatchItem
from fencerow.errors import MissingExtra
from fencerow.testing import drain
from fencerow.traces import current_headers, trace_jobs
from tests.web.webhooks.stage import app_at, hooks_of, receiving

CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Traced:
    """An app whose spans are kept here."""

    def __init__(self, app: App) -> None:
        self.app = app
        self._kept = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._kept))
        trace_jobs(app, self.provider)

    def spans(self, name: str) -> list[ReadableSpan]:
        return [each for each in self._kept.get_finished_spans() if each.name == name]

    def only(self, name: str) -> ReadableSpan:
        (found,) = self.spans(name)
        return found


@pytest.fixture
def traced(migrated_path: Path) -> Iterator[Traced]:
    app = App(f"sqlite:///{migrated_path}", config=Config(attempts_max=1))
    made = Traced(app)
    yield made
    app.close()


def context(span: ReadableSpan) -> trace.SpanContext:
    found = span.get_span_context()
    assert found is not None
    return found


def is_child(child: ReadableSpan, parent: ReadableSpan) -> bool:
    return child.parent is not None and child.parent.span_id == context(parent).span_id


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_run_is_linked_to_its_submit_and_continues_the_trace_of_the_caller(traced: Traced) -> None:
    @traced.app.job(queue="mail")
    async def send(to: str) -> None: ...

    with traced.provider.get_tracer("test").start_as_current_span("request"):
        handle = send.using(headers={"correlation-id": "r-1"}).submit("ada")
    drain(traced.app)

    request, submit, process = (traced.only(name) for name in ("request", "submit send", "process send"))
    assert (submit.kind, process.kind) == (trace.SpanKind.PRODUCER, trace.SpanKind.CONSUMER)
    assert is_child(submit, request) and is_child(process, submit)
    assert [link.context.span_id for link in process.links] == [context(submit).span_id]
    assert attributes(process) == {
        "messaging.system": "fencerow",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "mail",
        "messaging.message.id": handle.id,
        "messaging.message.conversation_id": "r-1",
        "fencerow.job.name": "send",
        "fencerow.job.attempt": 1,
    }
    assert attributes(submit)["messaging.operation.type"] == "send"


def test_what_a_job_submits_belongs_to_its_run_and_to_its_request(traced: Traced) -> None:
    @traced.app.job
    def second() -> dict[str, str]:
        return current_headers()

    @traced.app.job
    def first() -> None:
        second.submit()

    first.using(headers={"correlation-id": "r-1", "traceparent": CALLER}).submit()
    ran = drain(traced.app)

    assert is_child(traced.only("submit second"), traced.only("process first"))
    process = traced.only("process second")
    assert format(context(process).trace_id, "032x") == CALLER.split("-")[1], "the gateway's caller began it"
    (found,) = [each.result for each in ran if each.name == "second"]
    assert found["correlation-id"] == "r-1"
    assert found["traceparent"].split("-")[2] == format(context(process).span_id, "016x")


def test_submits_of_one_call_are_siblings(traced: Traced) -> None:
    @traced.app.job
    async def send(to: str) -> None: ...

    send.submit_many([send.call("ada"), send.call("bob")])

    assert [span.parent for span in traced.spans("submit send")] == [None, None]


def test_a_batch_is_one_span_with_a_link_to_each(traced: Traced) -> None:
    @traced.app.batch_job(batch_max=10)
    async def index(items: Sequence[BatchItem[int, None]]) -> None:
        for item in items:
            item.succeed(None)

    index.submit_many([index.call(1), index.call(2)])
    drain(traced.app, slots=2)

    process = traced.only("process index")
    submits = {context(span).span_id for span in traced.spans("submit index")}
    assert {link.context.span_id for link in process.links} == submits and len(submits) == 2
    assert process.parent is None and attributes(process)["messaging.batch.message_count"] == 2


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (ValueError("no"), trace.StatusCode.ERROR, "ValueError"),
        (Retry(0.0, "later"), trace.StatusCode.UNSET, None),
    ],
)
def test_an_error_is_told_and_a_retry_on_purpose_is_none(
    traced: Traced, error: Exception, status: trace.StatusCode, kind: str | None
) -> None:
    @traced.app.job
    async def send(job: Job) -> None:
        raise error

    send.submit()
    drain(traced.app, check=False)

    process = traced.spans("process send")[0]
    assert (process.status.status_code, attributes(process).get("error.type")) == (status, kind)


def test_a_webhook_carries_the_trace_and_the_request_of_the_job_that_it_tells_of(migrated_path: Path) -> None:
    with receiving() as receiver, app_at(f"sqlite:///{migrated_path}", receiver.url) as app:
        traced = Traced(app)
        hooks_of(app).add("it", receiver.url)
        app.jobs["send"].using(headers={"correlation-id": "r-1"}).submit("ada")
        drain(app)

    submit, sent = traced.only("submit send"), traced.only("process fencerow.webhook")
    assert context(sent).trace_id == context(submit).trace_id
    assert attributes(sent)["messaging.message.conversation_id"] == "r-1"
    (got,) = receiver.got
    _, trace_id, span_id, _ = got.headers["traceparent"].split("-")
    assert (int(trace_id, 16), int(span_id, 16)) == (context(sent).trace_id, context(sent).span_id)


def test_without_the_library_it_says_what_to_install(
    migrated_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)

    with pytest.raises(MissingExtra, match=r"fencerow\[otel\]"):
        trace_jobs(App(f"sqlite:///{migrated_path}"))
