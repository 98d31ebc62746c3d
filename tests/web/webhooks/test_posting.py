"""One POST: what is sent, what counts as an answer, and what is told when there is none."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
import traceback
from collections.abc import Sequence
from email.utils import formatdate
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

import fencerow.web.webhooks.resolving as resolving
from fencerow.core.errors import InvalidInput
from fencerow.web.webhooks.addresses import Allowed
from fencerow.web.webhooks.errors import FailedBy, PostFailed
from fencerow.web.webhooks.exchange import KEPT_BYTES, PostExchange, request_of, retry_after_s
from fencerow.web.webhooks.posting import ReceiverReply, post
from fencerow.web.webhooks.resolving import Lookups
from fencerow.web.webhooks.urls import Target
from tests.kit.pace import PATIENCE_S
from tests.web.webhooks.receiver import Authority, Script, receiver, says

OK = b"HTTP/1.1 204 No Content\r\n\r\n"
SHORT_S = 0.05  # for those that never answer
HERE = Allowed.parsed(["http://127.0.0.1:1"])


def allowed(port: int) -> Allowed:
    return Allowed.parsed([f"http://127.0.0.0/8:{port}", f"hooks.test:{port}"])


async def posted(port: int, *, body: bytes = b"{}", timeout_s: float = PATIENCE_S) -> ReceiverReply:
    url = f"http://127.0.0.1:{port}/hook?a=b"
    return await post(url, body, {"webhook-id": "m1"}, timeout_s=timeout_s, allow=allowed(port))


async def test_exactly_these_bytes_arrive_and_the_answer_is_kept() -> None:
    answer = b"HTTP/1.1 503 Busy\r\nRetry-After: 120\r\nContent-Length: 5\r\n\r\nlater"
    body = b'{"\xff\x00": 1}\r\n'

    async with receiver(says(answer)) as it:
        reply = await posted(it.port, body=body)

    head, _, sent = it.requests[0].partition(b"\r\n\r\n")
    assert sent == body
    assert head.startswith(b"POST /hook?a=b HTTP/1.1\r\n")
    lines = {line.lower() for line in head.split(b"\r\n")}
    assert {b"host: 127.0.0.1:%d" % it.port, b"webhook-id: m1", b"connection: close"} <= lines
    assert (reply.status, reply.retry_after_s, reply.body_start) == (503, 120.0, b"later")


async def test_the_name_is_asked_for_once_and_stays_in_sni_and_host(tmp_path: Path) -> None:
    authority = Authority.new()
    asked: list[str] = []

    def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.9"]  # rebound meanwhile

    async with receiver(says(OK), authority.server("hooks.test", tmp_path)) as it:
        url = f"https://Hooks.test:{it.port}/"
        reply = await post(
            url,
            b"{}",
            {},
            timeout_s=PATIENCE_S,
            allow=allowed(it.port),
            resolve=resolve,
            tls=authority.client(),
        )

    assert (reply.status, asked, it.names) == (204, ["hooks.test"], ["hooks.test"])
    assert b"host: hooks.test:%d\r\n" % it.port in it.requests[0].lower()


@pytest.mark.parametrize("wrong", ["name", "authority"])
async def test_a_certificate_that_is_not_its_own_ends_it(wrong: str, tmp_path: Path) -> None:
    authority = Authority.new()
    client = authority.client() if wrong == "name" else ssl.create_default_context()
    name = "other.test" if wrong == "name" else "hooks.test"

    async with receiver(says(OK), authority.server(name, tmp_path)) as it:
        with pytest.raises(PostFailed) as failed:
            await post(
                f"https://hooks.test:{it.port}/",
                b"secret",
                {},
                timeout_s=PATIENCE_S,
                allow=allowed(it.port),
                resolve=lambda host, port: ["127.0.0.1"],
                tls=client,
            )

    assert failed.value.kind is FailedBy.TLS
    assert it.requests == []


async def test_a_redirect_is_an_answer_and_no_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    async with receiver(says(b"HTTP/1.1 307 Elsewhere\r\nLocation: /again\r\n\r\n")) as it:
        reply = await posted(it.port)

    assert (reply.status, it.connections) == (307, 1)


async def test_another_address_is_tried_where_one_takes_no_connection() -> None:
    async with receiver(says(OK)) as it:
        reply = await post(
            f"http://hooks.test:{it.port}/",
            b"{}",
            {},
            timeout_s=PATIENCE_S,
            allow=Allowed.parsed([f"http://127.0.0.0/8:{it.port}"]),
            resolve=lambda host, port: ["127.0.0.2", "127.0.0.1"],
        )

    assert reply.status == 204


async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def drips_its_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nx: ")
    while not writer.transport.is_closing():
        writer.write(b"x")
        await asyncio.sleep(0.005)


FAILS: dict[str, tuple[Script, FailedBy]] = {
    "closes": (says(b""), FailedBy.RESET),
    "closes within the head": (says(b"HTTP/1.1 200 OK\r\nx: y\r\n"), FailedBy.RESET),
    "speaks SMTP": (says(b"220 mail.internal ESMTP\r\n\r\n"), FailedBy.PROTOCOL),
    "speaks of another protocol": (says(b"HTTP/1.1 101 Switch\r\nUpgrade: x\r\n\r\n"), FailedBy.PROTOCOL),
    "has two lengths": (
        says(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"),
        FailedBy.PROTOCOL,
    ),
    "is never done with 1xx": (says(b"HTTP/1.1 102 Wait\r\n\r\n" * 20), FailedBy.PROTOCOL),
    "has an endless head": (says(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 40_000), FailedBy.TOO_LARGE),
    "says nothing": (silence, FailedBy.TIMEOUT),
    "drips its head": (drips_its_head, FailedBy.TIMEOUT),
}


@pytest.mark.parametrize("how", FAILS)
async def test_what_is_no_answer_is_told_in_general_words(how: str) -> None:
    script, kind = FAILS[how]

    async with receiver(script) as it:
        with pytest.raises(PostFailed) as failed:
            await posted(it.port, timeout_s=SHORT_S if kind is FailedBy.TIMEOUT else PATIENCE_S)

    assert failed.value.kind is kind
    assert failed.value.took_s > 0
    _tells_nothing(failed.value, "127.0.0.1", "internal", str(it.port))


async def test_no_connection_and_no_address_are_told_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]

    def nowhere(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror("nobody knows hooks.test")

    with pytest.raises(PostFailed) as unconnected:
        await posted(port)
    for resolve in (nowhere, lambda host, port: [], lambda host, port: ["no address"]):
        with pytest.raises(PostFailed) as unknown:
            await post("https://hooks.test/", b"", {}, timeout_s=PATIENCE_S, allow=Allowed(), resolve=resolve)
        assert unknown.value.kind is FailedBy.DNS
        _tells_nothing(unknown.value, "hooks.test", "no address'")

    assert unconnected.value.kind is FailedBy.CONNECT
    _tells_nothing(unconnected.value, "127.0.0.1", str(port))


def test_its_error_is_made_of_a_text_like_all_others_and_of_a_kind() -> None:
    plain, of_kind = PostFailed("nobody was there", "why", "fix"), PostFailed.by(FailedBy.DNS, 1.5)

    assert (plain.what, plain.why, plain.kind) == ("nobody was there", "why", FailedBy.PROTOCOL)
    assert (of_kind.kind, of_kind.took_s, "no address" in str(of_kind)) == (FailedBy.DNS, 1.5, True)


def _tells_nothing(error: PostFailed, *secrets: str) -> None:
    """Neither it nor what it was caused by, which is stored with a failed job."""
    told = "".join(traceback.format_exception_only(error))

    assert [secret for secret in secrets if secret in told] == []
    assert error.__cause__ is None and error.__context__ is None


async def test_lookups_that_hang_are_bounded_and_those_behind_them_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resolving, "LOOKUPS", Lookups(threads_max=1))
    over = threading.Event()
    asked: list[str] = []

    def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        assert host != "hangs.test" or over.wait(PATIENCE_S)
        return ["127.0.0.1"]

    async def tried(host: str, timeout_s: float) -> FailedBy:
        with pytest.raises(PostFailed) as failed:
            await post(f"https://{host}/", b"", {}, timeout_s=timeout_s, allow=Allowed(), resolve=resolve)
        return failed.value.kind

    given_up = [await tried(host, SHORT_S) for host in ("hangs.test", "waits.test")]
    behind = asyncio.create_task(tried("next.test", PATIENCE_S))
    await asyncio.sleep(0)
    over.set()

    assert await behind is FailedBy.REFUSED_ADDRESS  # its name was asked for, after all
    assert given_up == [FailedBy.TIMEOUT] * 2
    assert asked == ["hangs.test", "next.test"]


async def test_an_answer_counts_once_its_head_is_there() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.transport.is_closing():
            writer.write(b"x" * 65_536)
            await writer.drain()

    async def resets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx")
        await writer.drain()

    async with receiver(endless) as it:
        cut = await posted(it.port)
    async with receiver(resets) as it:
        short = await posted(it.port)
    async with receiver(says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n")) as it:
        broken = await posted(it.port)

    assert cut.body_start == b"x" * KEPT_BYTES
    assert (cut.status, short.status, short.body_start, broken.status) == (200, 200, b"x", 200)


async def test_a_body_that_drips_ends_with_the_time() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx")
    exchange = PostExchange(reader, cast("asyncio.StreamWriter", SimpleNamespace(write=lambda _: None)))
    head = await exchange.head(request_of(Target(True, "hooks.test", 80, "/"), {}, b""), b"")

    start, _ = await exchange.rest(asyncio.get_running_loop().time())

    assert (head.status_code, start) == (200, b"x")


async def test_who_answers_before_reading_everything_is_heard() -> None:
    """The receiver reads the head only, and the buffers of the system do not take the rest."""

    async def early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too much\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        await given.wait()
        writer.transport.abort()
        over.set()

    given, over = asyncio.Event(), asyncio.Event()
    server = await asyncio.start_server(early, "127.0.0.1", 0)
    try:
        reply = await posted(server.sockets[0].getsockname()[1], body=bytes(20_000_000))
    finally:
        given.set()
        await over.wait()
        server.close()
        await server.wait_closed()

    assert reply.status == 413


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "other.test"},
        {"content-length": "0"},
        {"x": "secret\r\ny: z"},
        {"x y": "secret"},
        {"x": "\u20ac"},
    ],
)
async def test_headers_that_cannot_be_sent_are_refused_without_their_values(headers: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="headers of a webhook") as refused:
        await post("http://127.0.0.1:1/", b"", headers, timeout_s=PATIENCE_S, allow=HERE)

    assert "secret" not in "".join(traceback.format_exception(refused.value)).partition("InvalidInput")[2]


def test_retry_after_is_seconds_or_a_date() -> None:
    def asked(text: str) -> float | None:
        return retry_after_s([(b"date", b"now"), (b"retry-after", text.encode())])

    later = asked(formatdate(time.time() + 86_400, usegmt=True))
    assert later is not None and 80_000 < later <= 86_400
    assert [asked(text) for text in ("0", "3600", "Wed, 21 Oct 2015 07:28:00 GMT")] == [0.0, 3600.0, 0.0]
    assert [asked(text) for text in ("", "-1", "1.5", "soon", "1 2", "Wed, 99 Oct 2015")] == [None] * 6
    assert retry_after_s([]) is None
