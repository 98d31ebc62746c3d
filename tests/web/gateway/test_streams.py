"""A job's events over HTTP: nothing is lost, nothing is told twice, and who has gone costs nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec
import pytest
from starlette.types import Message

from fencerow import App, Job
from fencerow.core.model.ids import new_id
from fencerow.core.model.state import State
from fencerow.operators.watching import KeptLine, WatchedJob
from fencerow.web.gateway import streaming, streams, watcher
from fencerow.web.gateway.asgi import Gateway
from fencerow.web.gateway.watcher import SETTLED_US, JobWatch, watchers
from fencerow.web.tokens.scope import Scope
from tests.kit.pace import PATIENCE_S
from tests.web.gateway.conftest import ALL, Door, calling, ended


@dataclass(frozen=True)
class Event:
    id: str
    kind: str
    data: dict[str, Any]


def parsed(text: str) -> list[Event]:
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "event" in fields:
            found.append(Event(fields["id"], fields["event"], json.loads(fields["data"])))
    return found


class Reader:
    """Who reads a stream without a network between, as slowly as it likes, until it hangs up."""

    def __init__(self, gateway: Gateway, job_id: str, method: str = "GET") -> None:
        self._gone = asyncio.Event()
        self._chunks: asyncio.Queue[str | None] = asyncio.Queue()
        self._asked = False
        scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1",
            "method": method, "path": f"/v1/jobs/{job_id}/events", "raw_path": b"", "root_path": "",
            "query_string": b"", "scheme": "http", "headers": [(b"host", b"127.0.0.1")],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
        }  # fmt: skip
        self.task = asyncio.ensure_future(gateway(scope, self._receive, self._send))

    async def _receive(self) -> Message:
        if self._asked:
            await self._gone.wait()
            return {"type": "http.disconnect"}
        self._asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.body":
            self._chunks.put_nowait(message["body"].decode() if message.get("more_body") else None)

    async def until(self, text: str) -> str:
        """All that came, up to the chunk that has this text."""
        found = ""
        async with asyncio.timeout(PATIENCE_S):
            while (chunk := await self._chunks.get()) is not None:
                found += chunk
                if text in chunk:
                    return found
        raise AssertionError(f"no {text!r} came, but {found!r}")

    async def over(self) -> str:
        """What comes until the stream ends."""
        found = ""
        async with asyncio.timeout(PATIENCE_S):
            while (chunk := await self._chunks.get()) is not None:
                found += chunk
        return found

    async def hang_up(self) -> None:
        self._gone.set()
        async with asyncio.timeout(PATIENCE_S):
            await self.task


async def answered(http: httpx.AsyncClient, path: str, **more: Any) -> httpx.Response:
    """The answer of who is to be refused. A stream would last, and so would a test that waits for its end."""
    async with asyncio.timeout(PATIENCE_S):
        return await http.get(path, **more)


async def nobody_looks(app: App) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while watchers.of(app).is_looking:
            await asyncio.sleep(0.01)


async def talk(job: Job, lines: int) -> None:
    for number in range(lines):
        await job.log(f"line {number}")
    await job.progress(50, "half")


@pytest.fixture
def talking(app: App) -> App:
    app.job(name="talk", queue="documents")(talk)
    return app


@pytest.fixture
async def elsewhere(talking: App, url: str, door: Door) -> AsyncIterator[httpx.AsyncClient]:
    """A caller of another gateway, of another app on the same database."""
    async with App(url) as other, calling(Gateway(other, authorize=door)) as made:
        yield made


async def test_a_reader_who_comes_again_anywhere_is_told_all_once(
    talking: App, gateway: Gateway, elsewhere: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "LINES_MAX", 3)
    job_id = (await talking.asubmit_by_name("talk", {"lines": 8})).id
    reader = Reader(gateway, job_id)
    seen = await reader.until("event: state")
    await ended(talking, job_id)
    told = parsed(seen + await reader.over())

    assert (told[0].kind, told[0].data["state"], told[-1].kind) == ("state", "queued", "end")
    assert told[-1].data["state"] == "succeeded"
    assert [each.data["message"] for each in told if each.kind == "log"] == [f"line {n}" for n in range(8)]
    assert [each.data["progress"] for each in told if each.kind == "progress"] == [50]
    last_state = max(at for at, each in enumerate(told) if each.kind == "state")
    for at, event in enumerate(told):
        answer = await answered(elsewhere, f"/v1/jobs/{job_id}/events", headers={"last-event-id": event.id})
        rest = [(each.kind, each.data) for each in parsed(answer.text)]
        left_out = set() if at >= last_state else {"state", "progress"}  # told as they are when somebody asks
        assert [each for each in rest if each[0] not in left_out] == [
            (each.kind, each.data) for each in told[at + 1 :] if each.kind not in left_out
        ]
        assert (answer.status_code == 204) is (event is told[-1])
    await talking.client.arevive(job_id)
    reopened = Reader(gateway, job_id)
    assert '"queued"' in await reopened.until("event: state")
    await reopened.hang_up()


async def test_who_hangs_up_is_forgotten_and_nobody_is_looked_for(app: App, gateway: Gateway) -> None:
    job_id = (await app.asubmit_by_name("pages", {"path": "a"})).id
    readers = [Reader(gateway, job_id) for _ in range(3)]
    for reader in readers:
        await reader.until("event: state")
    assert watchers.of(app).count == 3

    for reader in readers:
        await reader.hang_up()

    await nobody_looks(app)
    assert watchers.of(app).count == 0


async def test_who_asks_for_the_head_of_a_stream_alone_is_answered_at_once(
    app: App, gateway: Gateway
) -> None:
    job_id = (await app.asubmit_by_name("pages", {"path": "a"})).id

    assert await Reader(gateway, job_id, "HEAD").over() == ""

    assert watchers.of(app).count == 0


async def test_a_gateway_that_leaves_sends_its_readers_elsewhere(app: App, gateway: Gateway) -> None:
    job_id = (await app.asubmit_by_name("pages", {"path": "a"})).id
    reader = Reader(gateway, job_id)
    await reader.until("event: state")

    gateway.leave()
    last = await reader.over()

    assert last.startswith("retry: ") and "event: end" not in last
    await nobody_looks(app)


async def test_a_quiet_stream_says_that_it_is_there_and_ends_after_its_time(
    app: App, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "KEEP_ALIVE_S", 0.2)
    object.__setattr__(app.config, "web_stream_s", 1.0)
    job_id = (await app.asubmit_by_name("pages", {"path": "a"})).id

    told = await Reader(gateway, job_id).over()

    assert ": still here\n\n" in told
    assert told.splitlines()[-2].startswith("retry: ")


async def test_a_job_that_goes_or_that_is_moved_away_ends_the_stream(
    app: App, gateway: Gateway, http: httpx.AsyncClient, door: Door
) -> None:
    door.only(Scope.READ, queues={"documents"})
    moved, removed = [(await app.asubmit_by_name("pages", {"path": "a"}, ephemeral=True)).id for _ in "12"]
    foreign = (await app.asubmit_by_name("mail", {"to": "ada"})).id
    readers = [Reader(gateway, job_id) for job_id in (moved, removed)]
    for reader in readers:
        await reader.until("event: state")

    await app.client.achange(moved, queue="letters")
    last = parsed(await readers[0].over())
    await ended(app, removed)
    parting = parsed(await readers[1].over())

    assert (last[-1].kind, last[-1].data) == ("gone", {})
    assert parting[-1].kind in ("gone", "end")
    assert (await answered(http, f"/v1/jobs/{foreign}/events")).status_code == 404
    assert (await answered(http, f"/v1/jobs/{moved}/events")).status_code == 404


async def test_an_id_that_is_of_no_event_of_this_job_is_refused(app: App, http: httpx.AsyncClient) -> None:
    job_id = (await app.asubmit_by_name("pages", {"path": "a"})).id
    good = streams.StreamSeen(job=job_id[-12:], position=7).id
    for bad in ("7", good + "x", good.replace(job_id[-12:], new_id()[-12:]), good[:-1] + "9" * 30):
        answer = await answered(http, f"/v1/jobs/{job_id}/events", headers=[("last-event-id", bad)])
        assert (answer.status_code, answer.json()["code"]) == (422, "FR-201"), bad


async def test_a_caller_has_so_many_streams_and_all_together_not_many_more(app: App, door: Door) -> None:
    object.__setattr__(app.config, "web_streams_max", 3)
    object.__setattr__(app.config, "web_streams_caller_max", 2)
    gateway = Gateway(app, authorize=door)
    path = f"/v1/jobs/{(await app.asubmit_by_name('pages', {'path': 'a'})).id}"
    readers: list[Reader] = []

    async def reading() -> None:
        readers.append(Reader(gateway, path.rpartition("/")[2]))
        await readers[-1].until("event: state")

    async with calling(gateway) as http:
        await http.head(f"{path}/events")  # whose stream never begins
        for _ in "12":
            await reading()
        own = await answered(http, f"{path}/events")
        door.grant = msgspec.structs.replace(ALL, id="t-2")
        await reading()
        everybody = await answered(http, f"{path}/events")
        assert (await http.get(path)).status_code == 200
        await readers[0].hang_up()
        await reading()

    assert [(each.status_code, each.json()["code"]) for each in (own, everybody)] == [
        (429, "FR-859"),
        (503, "FR-859"),
    ]
    assert "streams" in own.json()["detail"] and own.headers["retry-after"]
    for reader in readers[1:]:
        await reader.hang_up()


def test_a_line_waits_for_one_that_may_still_come_before_it() -> None:
    look = WatchedJob(
        id=new_id(), queue="q", state=State.RUNNING, attempt=2, failures=0, run_at_us=0, claimed_at_us=0,
        ended_at_us=None, cancel_requested_at_us=None, progress=None, progress_note=None, last_line=9,
    )  # fmt: skip
    watch, now_us = JobWatch(look.id, 0), 10 * SETTLED_US
    watch.told(look)
    old, late = now_us - 2 * SETTLED_US, now_us - SETTLED_US // 2

    def line(line_id: int, at_us: int, attempt: int = 2) -> KeptLine:
        return KeptLine(line_id, attempt, at_us, "info", "", now_us)

    watch.given([line(1, late, attempt=1), line(2, old), line(4, late), line(5, old)])
    assert [each.id for each in watch.take()] == [1, 2]
    assert watch.wants_lines and watch.position == 2
    watch.told(msgspec.structs.replace(look, state=State.SUCCEEDED))
    watch.given([line(3, late), line(4, late)])
    assert [each.id for each in watch.take()] == [3, 4]
