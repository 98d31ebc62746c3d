"""The output of a job over HTTP: all of it once, whoever is asked, while the job runs and afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from fencerow import App, Backoff, Job
from fencerow.errors import JobNotFound
from fencerow.web.gateway.asgi import Gateway
from fencerow.web.remote import RemoteClient
from fencerow.web.tokens.scope import Scope
from tests.web.gateway.conftest import Door, calling, ended
from tests.web.gateway.serving import Serve
from tests.web.gateway.test_streams import parsed

SAID = ["Hello ", "wor\u2028ld", b"\x00\xff", {"a": [1]}]


async def tell(job: Job) -> None:
    for each in SAID:
        await job.emit(each)
    if job.attempt == 1:
        raise RuntimeError("the first part ends in the middle")


@pytest.fixture
def telling(app: App) -> App:
    app.job(name="tell", queue="documents", attempts_max=2, backoff=Backoff(base_s=0.0, jitter=0.0))(tell)
    return app


@pytest.fixture
async def elsewhere(telling: App, url: str, door: Door) -> AsyncIterator[httpx.AsyncClient]:
    """A caller of another gateway, of another app on the same database."""
    async with App(url) as other, calling(Gateway(other, authorize=door)) as made:
        yield made


async def test_a_reader_who_comes_again_anywhere_is_told_the_rest(
    telling: App, http: httpx.AsyncClient, elsewhere: httpx.AsyncClient
) -> None:
    job_id = (await telling.asubmit_by_name("tell")).id
    await ended(telling, job_id)

    told = parsed((await http.get(f"/v1/jobs/{job_id}/output")).text)

    one_part = ["part", "chunk", "chunk", "chunk", "chunk"]
    assert [each.kind for each in told] == [*one_part, *one_part, "end"]
    chunks = [each.data for each in told if each.kind == "chunk"]
    assert [chunk.get("text", chunk.get("bytes", chunk.get("json"))) for chunk in chunks] == 2 * [
        "Hello ", "wor\u2028ld", "AP8=", {"a": [1]},
    ]  # fmt: skip
    assert [each.data["attempt"] for each in told if each.kind == "part"] == [1, 2]
    assert told[-1].data == {"state": "succeeded", "attempt": 2}
    for at in (1, 4, 8):
        answer = await elsewhere.get(f"/v1/jobs/{job_id}/output", headers={"last-event-id": told[at].id})
        rest = [each for each in parsed(answer.text) if each.kind != "part"]
        assert rest == [each for each in told[at + 1 :] if each.kind != "part"]
    after = await http.get(f"/v1/jobs/{job_id}/output", params={"after": chunks[-2]["offset"]})
    assert [each.kind for each in parsed(after.text)] == ["part", "chunk", "end"]
    last = {"last-event-id": told[-1].id}
    assert (await http.get(f"/v1/jobs/{job_id}/output", headers=last)).status_code == 204


async def test_who_may_not_read_the_job_or_asks_badly_is_refused(
    telling: App, http: httpx.AsyncClient, door: Door
) -> None:
    job_id = (await telling.asubmit_by_name("tell")).id
    address = f"/v1/jobs/{job_id}/output"

    assert (await http.get(address, headers={"last-event-id": f"{'0' * 12}.1"})).status_code == 422
    assert (await http.get(address, params={"after": -1})).status_code == 422
    door.only(Scope.READ, queues={"letters"})
    assert (await http.get(address)).status_code == 404
    door.only(Scope.SUBMIT)
    assert (await http.get(address)).status_code == 403


async def test_a_remote_client_reads_it_while_it_comes_over_several_connections(
    serve: Serve, open_app: App
) -> None:
    heard = asyncio.Event()

    async def slowly(job: Job) -> None:
        await job.emit(SAID[0])
        await heard.wait()  # without the reader it does not go on
        for each in SAID[1:]:
            await job.emit(each)

    open_app.job(name="slowly", queue="documents")(slowly)
    async with serve(web_stream_s=1.0) as served, open_app.worker():
        job_id = (await open_app.asubmit_by_name("slowly")).id
        async with RemoteClient(f"http://127.0.0.1:{served.port}", token="t") as client:
            found = []
            async with asyncio.timeout(60):
                async for chunk in client.aoutput(job_id):
                    found.append(chunk.data)
                    heard.set()
            behind = await asyncio.to_thread(lambda: list(client.output(job_id, after=chunk.offset - 1)))
            with pytest.raises(JobNotFound):
                await anext(client.aoutput("0198c5a0-0000-7000-8000-000000000000"))

    assert found == SAID
    assert [each.data for each in behind] == SAID[-1:]
