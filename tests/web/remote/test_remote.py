"""A client of the gateway does what the library does beside the database: same verbs, same errors, nothing twice."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from fencerow import App
from fencerow.core.client.handle import Handle
from fencerow.db import run as loops
from fencerow.errors import (
    FencerowError,
    HandoverLost,
    HandoverNotFound,
    IllegalMove,
    InvalidArguments,
    InvalidInput,
    JobFailed,
    JobNotFound,
    KeyConflict,
    NotReady,
    OutcomeUnknown,
    ResultTimeout,
    Unavailable,
    UnknownJob,
)
from fencerow.supervisor.probes import ProbeAddress, listening
from fencerow.web.errors import NotAllowed, NotAuthenticated
from fencerow.web.remote import RemoteClient, RemoteHandle, exchange
from fencerow.web.tokens.scope import Scope
from tests.web.gateway.conftest import Door

PATIENCE_S = 60.0


async def test_from_submit_to_result_as_beside_the_database(lite_app: App, client: RemoteClient) -> None:
    handle = await client.asubmit("pages", {"path": "a.pdf"}, key='say "a"', priority=3, tags=["big"])
    again = await client.asubmit("pages", {"path": "a.pdf"}, key='say "a"')

    assert (again.id, handle.answer, again.answer) == (handle.id, "inserted", "existing")
    found = await handle.arefresh()
    assert (found.state, found.priority, found.tags, found.key) == ("queued", 3, ["big"], 'say "a"')
    with pytest.raises(NotReady):
        await handle.aresult(0)
    with pytest.raises(ResultTimeout, match="had not ended within"):
        await handle.aresult(0.05)
    async with lite_app.worker():
        assert await handle.aresult(PATIENCE_S) == {"path": "a.pdf", "pages": 3}


async def test_a_receiver_takes_the_ends_of_a_key_in_their_order(lite_app: App, client: RemoteClient) -> None:
    bot = client.receiver("bot")
    line = {"key": "a", "receiver": "bot"}
    first, second = [await client.asubmit("pages", {"path": path}, handover=line) for path in ("1", "2")]
    async with lite_app.worker():
        await lite_app.client.await_ended(second.id)
        await lite_app.client.await_ended(first.id)

    (end,) = await bot.atake(5, wait_s=PATIENCE_S)
    assert (end.id, end.result, await bot.atake(5)) == (first.id, {"path": "1", "pages": 3}, [])
    assert (await bot.arelease(end), await bot.arelease(end)) == (True, False)
    (again,) = await bot.atake(5)
    with pytest.raises(HandoverLost):
        await bot.aconfirm(end)
    assert [await bot.aconfirm(again) for _ in range(2)] == [False, True]
    assert [each.id for each in await bot.atake(5)] == [second.id]
    with pytest.raises(HandoverNotFound):
        await client.receiver("other").aconfirm(again)


async def test_threads_have_the_same_verbs(client: RemoteClient) -> None:
    def steps() -> list[object]:
        handle = client.submit("pages", {"path": "a.pdf"})
        return [handle.status(), handle.cancel(), handle.status()]

    assert await asyncio.to_thread(steps) == ["queued", "cancelled", "cancelled"]
    with pytest.raises(InvalidInput, match="FR-207"):
        client.submit("pages", {"path": "a.pdf"})


async def test_what_the_gateway_refuses_is_the_librarys_own_error(client: RemoteClient, door: Door) -> None:
    handle = await client.asubmit("pages", {"path": "a.pdf"}, key="k")
    await handle.acancel()
    nobody = client.handle("01900000-0000-7000-8000-000000000000")
    wanted: list[tuple[type[FencerowError], Callable[[], Any]]] = [
        (UnknownJob, lambda: client.asubmit("pagez")),
        (InvalidArguments, lambda: client.asubmit("pages", {"path": 7})),
        (KeyConflict, lambda: client.asubmit("pages", {"path": "b.pdf"}, key="k")),
        (JobNotFound, nobody.arefresh),
        (IllegalMove, handle.acancel),
    ]
    for kind, call in wanted:
        with pytest.raises(kind) as caught:
            await call()
        assert type(caught.value) is kind
        assert getattr(caught.value, "state", "cancelled") == "cancelled"

    door.only(Scope.READ)
    with pytest.raises(NotAllowed):
        await handle.acancel()
    door.grant = None
    with pytest.raises(NotAuthenticated):
        await handle.arefresh()


@dataclass
class Script:
    """A gateway that answers by a script and keeps what it was asked: status, headers and body, or a cut line."""

    answers: list[tuple[int, dict[str, str], bytes] | None]
    asked: list[tuple[str, str, bytes]] = field(default_factory=list)


@pytest.fixture
def scripted() -> Iterator[Callable[..., tuple[str, Script]]]:
    servers: list[ThreadingHTTPServer] = []

    def make(*answers: tuple[int, dict[str, str], bytes] | None) -> tuple[str, Script]:
        script = Script(list(answers))

        class Answers(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"] or 0))
                script.asked.append((self.command, self.path, body))
                answer = script.answers.pop(0)
                if answer is None:
                    self.connection.close()
                    return
                status, headers, content = answer
                self.send_response(status)
                for name, value in {**headers, "content-length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST  # noqa: N815

            def log_message(self, format: str, *_: object) -> None:  # noqa: A002
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}", script

    yield make
    for server in servers:
        server.shutdown()
        server.server_close()


STORED = (
    202,
    {"content-type": "application/json"},
    b'{"id":"01900000-0000-7000-8000-000000000001","job":"p","url":"/"}',
)
BUSY = (
    503,
    {"content-type": "application/problem+json", "retry-after": "1"},
    b'{"code":"FR-502","detail":"the database cannot be used now","repeat":"yes"}',
)
PROXY = (502, {"content-type": "text/html"}, b"<h1>Bad gateway</h1>")


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(loops, "_sleep", found.append)
    return found


def test_what_is_lost_is_sent_again_under_the_same_id(
    scripted: Callable[..., tuple[str, Script]], pauses: list[float]
) -> None:
    url, script = scripted(None, BUSY, PROXY, STORED)
    with RemoteClient(url, token="t") as client:
        client.submit("p", {})

    assert len(script.asked) == 4
    assert len({body for _, _, body in script.asked}) == 1
    assert b'"id":"' in script.asked[0][2]
    assert max(pauses) >= 1.0  # as the gateway asked


def test_when_patience_ends_it_is_said_what_is_unknown(
    scripted: Callable[..., tuple[str, Script]], pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time goes on only while it pauses, so that a slow machine uses up no patience."""
    monkeypatch.setattr(exchange, "_now", lambda: sum(pauses))
    url, script = scripted(None)
    with RemoteClient(url, token="t", patience_s=0) as client, pytest.raises(OutcomeUnknown) as caught:
        client.submit("p", {})
    assert caught.value.job_ids[0].encode() in script.asked[0][2]

    url, script = scripted(None, BUSY)  # that the second try stored nothing says nothing of the first
    with RemoteClient(url, token="t", patience_s=1) as client, pytest.raises(OutcomeUnknown):
        client.submit("p", {})
    assert len(script.asked) == 2

    nobody = listening(ProbeAddress("127.0.0.1", 0))  # bound and never answered from here on
    address = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    nobody.close()
    with RemoteClient(address, token="t", patience_s=0) as client, pytest.raises(Unavailable):
        client.submit("p", {})


@pytest.mark.parametrize(
    "url", ["", "ftp://x", "http://", "http://u:p@h", "http://h?q=1", "jobs.example.com"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="FR-201"):
        RemoteClient(url or None, token="t")


def test_a_failed_job_tells_its_error(scripted: Callable[..., tuple[str, Script]]) -> None:
    body = (
        b'{"code":"FR-305","detail":"job failed","repeat":"no","error":{"type":"ValueError","message":"bad"}}'
    )
    url, _ = scripted((409, {}, body))
    with RemoteClient(url, token="t") as client, pytest.raises(JobFailed) as caught:
        client.handle("01900000-0000-7000-8000-000000000001").result()
    assert (caught.value.error.type, caught.value.error.message) == ("ValueError", "bad")


def test_its_handle_has_the_verbs_of_the_librarys_handle() -> None:
    for name in ("result", "refresh", "status", "cancel", "revive", "change", "run_now"):
        own, other = (inspect.signature(getattr(kind, name)) for kind in (RemoteHandle, Handle))
        without = {each for each in other.parameters if each not in ("reason", "connection")}
        assert set(own.parameters) == without, name
        assert callable(getattr(RemoteHandle, f"a{name}"))
