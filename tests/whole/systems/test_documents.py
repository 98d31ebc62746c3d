"""Part A of the four systems over HTTP: flydocs, rebuilt as examples/documents, behind gateways of its own."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from examples.documents.files import FOLDER
from fencerow.core.model.ids import new_id
from fencerow.web.webhooks.looking import Delivery
from fencerow.web.webhooks.verbs import Webhooks
from tests.kit.pace import PATIENCE_S, slower
from tests.web.webhooks.stage import Answer, Got, Receiver, hooks_of, is_signed, receiving
from tests.whole.systems import documents
from tests.whole.systems.documents import args, note, places, posted_as
from tests.whole.systems.outside import until
from tests.whole.systems.serving import WAIT_S, posted, result_of, serving, told
from tests.whole.systems.stage import QUICK, STEADY, Stage


@pytest.fixture
def customer() -> Iterator[Receiver]:
    """Where a customer receives webhooks."""
    with receiving() as made:
        yield made


@pytest.fixture
async def stage(
    url: str, monkeypatch: pytest.MonkeyPatch, customer: Receiver, tmp_path: Path
) -> AsyncIterator[Stage]:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.setenv("DOCUMENTS_READING", "tests.whole.systems.documents_reading")
    monkeypatch.setenv("FENCEROW_WEBHOOK_ALLOW", customer.url.removesuffix("/hooks"))
    made = Stage(documents, url, monkeypatch)
    await made.open()
    yield made
    await made.close()


@pytest.mark.prove
@pytest.mark.scenario("A.5")
@pytest.mark.timed
async def test_of_two_ends_of_one_job_one_counts_and_one_webhook_tells_it(
    stage: Stage, customer: Receiver, tmp_path: Path
) -> None:
    """The first worker is frozen beyond its lease, and a second one runs the job. Both end it, the first one first:
    what it brings is of an attempt that is not the job's any more."""
    lease_s = slower(3.0)
    await stage.open(lease_s=lease_s, renew_s=0.2)
    added = await hooks_of(stage.app).aadd("customer", customer.url, queues=["documents"])
    documents.model.script("hang", "hang", "ok")
    async with serving(stage, tmp_path) as (http,):
        deed = await posted(http, "extract", args("deed"))
        with stage.process(tmp_path / "first.log", lease_s=300, renew_s=100) as first:
            await until(documents.model.calls, "the first claim")
            async with documents.app.worker() as second:
                await until(lambda: stage.age_s(second.holder) > lease_s + 5 * QUICK["sweep_s"])
                await stage.freeze(first)
                stage.pass_time(600)
                await until(lambda: len(documents.model.calls()) == 2, "the second claim")
                documents.model.release(0)
                first.send_signal(signal.SIGCONT)
                first.send_signal(signal.SIGTERM)
                await asyncio.to_thread(first.wait, PATIENCE_S)
                between = (await http.get(deed)).json()
                documents.model.release(1)
                assert note(await result_of(http, deed)) == "pages of deed"
                # Events are told in their order: once this one's has come, no more is to come of those before it.
                later = await posted(http, "extract", args("a later one"))
                await until(lambda: len(customer.got) >= 2 and _ended(customer.got[-1]) in later)
        job = (await http.get(deed)).json()

    assert (between["state"], between["attempt"]) == ("running", 2), "an end of another attempt counted"
    assert (job["state"], job["attempt"]) == ("succeeded", 2)
    assert documents.model.calls() == ["deed", "deed", "a later one"]
    assert [_ended(got) in deed for got in customer.got] == [True, False]
    assert all(is_signed(got, added.secret) for got in customer.got)
    (delivery,) = await hooks_of(stage.app).adeliveries(job=job["id"])
    assert (delivery.state, delivery.attempts) == ("delivered", 1)


@pytest.mark.scenario("A.6")
async def test_ten_concurrent_posts_under_one_key_are_one_job(stage: Stage, tmp_path: Path) -> None:
    """Five at each of two gateways."""

    async def post(http: httpx.AsyncClient) -> httpx.Response:
        return await http.post(
            "/v1/jobs",
            json={"job": "extract", "args": args("invoice")},
            headers={"Idempotency-Key": '"request-1"'},
        )

    async with serving(stage, tmp_path, 2) as gateways:
        answers = await asyncio.gather(*(post(gateways[number % 2]) for number in range(10)))
        await stage.work()
        (job,) = (await gateways[0].get("/v1/jobs")).json()["jobs"]

    assert [answer.status_code for answer in answers] == [202] * 10
    assert len({answer.content for answer in answers}) == 1
    assert sum("idempotent-replayed" in answer.headers for answer in answers) == 9
    assert (job["id"], job["state"]) == (answers[0].json()["id"], "succeeded")
    assert documents.model.calls() == ["invoice"]


@pytest.mark.scenario("A.12")
async def test_a_webhook_is_sent_again_under_its_id_until_it_is_taken_or_its_attempts_are_used_up(
    stage: Stage, customer: Receiver, tmp_path: Path
) -> None:
    """One end of a job, told to three: one is down for a moment, one answers 400, one is down for good.

    A 400 is tried again like all that is not 2xx: a receiver that is set up wrongly says it until somebody mends that.
    Who wants one POST alone gives the endpoint one attempt.
    """
    await stage.open(**STEADY)
    answers = {"/flaky": [503, 200], "/picky": [400], "/broken": [503] * 5}
    customer.answer = lambda got: _next(answers, got)
    hooks, at = hooks_of(stage.app), customer.url.removesuffix("/hooks")
    secrets = {
        path: (await hooks.aadd(path[1:], at + path, attempts_max=attempts)).secret
        for path, attempts in (("/flaky", 5), ("/picky", 1), ("/broken", 5))
    }
    async with serving(stage, tmp_path) as (http,), documents.app.worker():
        deed = await posted(http, "extract", args("deed"))
        await until(lambda: len(customer.got) >= 3, "the first attempts")
        for attempt in range(1, 6):
            await _passed_over(stage, (await _deliveries(hooks))["broken"], attempt)
        await until(lambda: _is_delivered(hooks, "flaky"), "the second attempt")
        deliveries = await _deliveries(hooks)
    got = defaultdict(list)
    for each in customer.got:
        got[each.path].append(each)

    assert {path: len(some) for path, some in got.items()} == {"/flaky": 2, "/picky": 1, "/broken": 5}
    for path, some in got.items():
        assert len({(each.id, each.body) for each in some}) == 1
        assert all(is_signed(each, secrets[path]) and _ended(each) in deed for each in some)
    assert {name: (each.state, each.attempts, each.status) for name, each in deliveries.items()} == {
        "flaky": ("delivered", 2, 200),
        "picky": ("failed", 1, 400),
        "broken": ("failed", 5, 503),
    }


@pytest.mark.scenario("A.13")
async def test_what_a_cancel_and_an_early_question_are_answered(stage: Stage, tmp_path: Path) -> None:
    """flydocs cancels what nobody runs. Besides, whoever wants it may ask the worker of a running job to stop it."""
    documents.model.script("hang")
    queued_only = {"only": "queued"}
    async with serving(stage, tmp_path) as (http,):
        queued = await posted(http, "extract", args("draft"), delay_s=3600)
        running = await posted(http, "extract", args("deed"))
        async with documents.app.worker():
            await until(documents.model.calls, "the run")
            answers = [
                await http.delete(queued, params=queued_only),
                await http.get(f"{queued}/result"),
                await http.delete(running, params=queued_only),
                await http.get(f"{running}/result"),
                await http.delete(f"/v1/jobs/{new_id()}", params=queued_only),
            ]
            refused = (await http.get(running)).json()
            stopped = await http.delete(running)
            ended = (await http.get(running, params={"wait": WAIT_S})).json()

    assert [told(answer) for answer in answers] == [
        (200, None),
        (409, "FR-306"),
        (409, "FR-303"),
        (409, "FR-307"),
        (404, "FR-301"),
    ]
    assert (refused["state"], refused["cancel_requested_at"]) == ("running", None), "a refusal left no trace"
    assert (stopped.status_code, ended["state"]) == (202, "cancelled")


@pytest.mark.scenario("A.14")
async def test_a_long_poll_is_answered_when_the_second_stage_ends_or_when_its_time_is_over(
    stage: Stage, tmp_path: Path
) -> None:
    """The document is extracted, then refined. One who polls with little time gets what the first stage found; one who
    polls with more gets the second one's result as soon as it is there."""
    documents.boxes.script("hang")
    async with serving(stage, tmp_path) as (http,), documents.app.worker():
        submitted = await http.post("/v1/flows", json=posted_as("deed"), headers={"Idempotency-Key": "deed"})
        assert submitted.status_code == 202, submitted.text
        deed = submitted.json()["url"]
        early = await result_of(http, deed)
        await until(documents.boxes.calls, "the second stage")
        in_time = await http.get(f"{deed}/result", params={"wait_for": "places", "wait": 0.1})

        began = time.monotonic()
        polling = asyncio.create_task(
            http.get(f"{deed}/result", params={"wait_for": "places", "wait": WAIT_S})
        )
        assert (await http.get(f"{deed}/result")).content == early.content
        documents.boxes.release()
        late = await polling
        took_s = time.monotonic() - began
        ended = (await http.get(deed, params={"wait": WAIT_S})).json()

    assert [answer.status_code for answer in (early, in_time, late)] == [200, 200, 200]
    assert [note(answer) for answer in (early, in_time, late)] == ["pages of deed"] * 3
    assert [places(answer) for answer in (early, in_time, late)] == [[], [], ["boxes of deed"]]
    assert [answer.headers["fencerow-stage"] for answer in (in_time, late)] == ["waiting", "succeeded"]
    assert took_s < WAIT_S - 10, "nobody told it of the end"
    assert (ended["state"], ended["counts"]["succeeded"]) == ("succeeded", 2)


@pytest.mark.prove
@pytest.mark.scenario("A.10")
async def test_a_second_stage_that_fails_for_good_leaves_the_fields_readable(
    stage: Stage, tmp_path: Path
) -> None:
    await stage.open(**STEADY)
    documents.counting.script("runtime error")
    async with serving(stage, tmp_path) as (http,), documents.app.worker():
        deed = (await http.post("/v1/flows", json=posted_as("deed"))).json()["url"]
        await result_of(http, deed)
        stages = (await http.get(f"{deed}/jobs")).json()["jobs"]
        second = documents.app.client.handle(next(each["id"] for each in stages if each["name"] == "places"))
        for attempt in (1, 2, 3):
            stage.pass_until((await stage.attempted(second, attempt)).run_at_us)
        after = await http.get(f"{deed}/result", params={"wait_for": "places", "wait": WAIT_S})
        told_of = {each["name"]: each for each in (await http.get(f"{deed}/jobs")).json()["jobs"]}

    assert (after.status_code, after.headers["fencerow-stage"]) == (200, "failed")
    assert note(after) == "pages of deed"
    assert {name: each["state"] for name, each in told_of.items()} == {
        "fields": "succeeded",
        "places": "failed",
    }
    assert told_of["places"]["error"]["code"] == "attempts_exhausted"
    assert len(documents.counting.calls()) == 3


@pytest.mark.prove
@pytest.mark.scenario("A.11")
@pytest.mark.parametrize(
    ("trouble", "delays_s"), [("value error", []), ("runtime error", [5, 10])], ids=["for good", "again"]
)
async def test_what_cannot_be_mended_is_tried_once_and_what_may_pass_three_times(
    stage: Stage, tmp_path: Path, trouble: str, delays_s: list[float]
) -> None:
    await stage.open(**STEADY)
    documents.model.script(trouble)
    async with serving(stage, tmp_path) as (http,), documents.app.worker():
        scan = await posted(http, "extract", args("scan"))
        handle = documents.app.client.handle(scan.rpartition("/")[2])
        delays: list[float] = []
        while not (job := await stage.attempted(handle, len(delays) + 1)).is_final:
            delays.append(stage.delay_s(handle, "retried"))
            stage.pass_until(job.run_at_us)
        ended = (await http.get(scan)).json()
        result = await http.get(f"{scan}/result")

    assert (ended["state"], ended["attempt"]) == ("failed", len(delays_s) + 1)
    assert told(result) == (409, "FR-305")
    assert [least <= found <= least * 1.2 + 0.001 for least, found in zip(delays_s, delays, strict=True)] == [
        True
    ] * len(delays_s)


@pytest.mark.prove
@pytest.mark.scenario("A.6")
async def test_what_is_no_document_is_refused_before_anything_is_stored(stage: Stage, tmp_path: Path) -> None:
    bad = posted_as("notes")
    bad["jobs"][0]["args"]["content"] = "bm8gUERG"
    async with serving(stage, tmp_path) as (http,):
        refused = [
            await http.post("/v1/flows", json=bad, headers={"Idempotency-Key": "notes"}),
            await http.post("/v1/jobs", json={"job": "extract", "args": {"name": "notes"}}),
        ]
        jobs = (await http.get("/v1/jobs")).json()["jobs"]

    assert [told(each) for each in refused] == [(422, "FR-203")] * 2
    assert refused[0].json()["where"] == "$.jobs[0].args.content"
    assert jobs == []


# --- short ways ---------------------------------------------------------------------------------------


def _ended(got: Got) -> str:
    """The id of the job whose end a webhook tells."""
    return str(got.document["data"]["job"])


def _next(answers: dict[str, list[int]], got: Got) -> Answer:
    return answers[got.path].pop(0), {}


async def _deliveries(hooks: Webhooks) -> dict[str, Delivery]:
    return {each.endpoint: each for each in await hooks.adeliveries()}


async def _is_delivered(hooks: Webhooks, endpoint: str) -> bool:
    return (await _deliveries(hooks))[endpoint].state == "delivered"


async def _passed_over(stage: Stage, delivery: Delivery, attempt: int) -> None:
    """Wait for this attempt of the delivery, and go to when the next one is due."""
    job = await stage.attempted(documents.app.client.handle(delivery.job_id), attempt)
    stage.pass_until(job.run_at_us)
