"""Bodies: refused by their headers before anything is read, and bounded while they are read."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest

from fencerow.core.errors import FencerowError
from fencerow.web.errors import InvalidRequest, RequestTooLarge, RequestTooSlow, UnsupportedBody
from fencerow.web.reading.body import Gone, Receive, body_of
from tests.web.reading.senders import JSON, MovedLoop, Sender, headers, played

Pairs = tuple[tuple[str, str], ...]
LENGTH = "content-length"


def read(receive: Receive, *pairs: tuple[str, str], bytes_max: int = 100, timeout_s: float = 10.0) -> bytes:
    return played(lambda: body_of(receive, headers(*pairs), bytes_max=bytes_max, timeout_s=timeout_s))


TYPES = [
    "application/json", "Application/JSON", " application/json ", "application/json;charset=utf-8",
    'application/json; charset="UTF-8"', "application/json ; charset=utf8;", "application/problem+json",
    "application/vnd.api+json; profile=x; version=1", "application/json;",
]  # fmt: skip
NO_TYPES = [
    "", "text/plain", "text/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "json",
    "application/jsonx", "application/json/x", "application/xml", "application/json; charset=latin-1", "*/*",
    "application/json; charset=utf-16", "application/json, text/plain", "application/json; charset", "x/y+json",
    'application/json; charset="utf-8', "application/json; charset=utf-8; charset=ascii", "application/+json",
    "application/json" + ";a=b" * 9_000, "application/json;" + " " * 9_000 + "é",
    "application/" + "x" * 9_000 + "+json",
]  # fmt: skip


@pytest.mark.parametrize("media", TYPES)
def test_json_in_utf_8_is_taken(media: str) -> None:
    assert read(Sender([b'{"a"', b":", b"", b"1}"]), ("content-type", media), (LENGTH, "7")) == b'{"a":1}'


@pytest.mark.parametrize(
    "pairs", [(), ((LENGTH, "0"),), (("content-type", "text/plain"),), (("content-encoding", "br"),)]
)
def test_an_empty_body_needs_no_type(pairs: Pairs) -> None:
    assert read(Sender([]), *pairs) == b""


WRONG_TYPES: list[Pairs] = [
    (), (JSON, JSON), *((("content-type", each),) for each in NO_TYPES),
    *((JSON, ("content-encoding", each)) for each in ("gzip", "br", "deflate", "", "identity, gzip", "x", "zstd")),
    (JSON, ("content-encoding", "identity"), ("content-encoding", "gzip")),
]  # fmt: skip


@pytest.mark.parametrize("told", [True, False], ids=["told", "untold"])
@pytest.mark.parametrize("pairs", WRONG_TYPES, ids=lambda pairs: ascii(pairs)[:40])
def test_what_is_no_plain_json_is_refused_unread(pairs: Pairs, told: bool) -> None:
    sender = Sender([b"1" * 10, b"2" * 10])
    with pytest.raises(UnsupportedBody) as refused:
        read(sender, *pairs, *(((LENGTH, "20"),) if told else ()))
    assert (refused.value.status, refused.value.closes) == (415, True)
    assert len(sender.left) == (2 if told else 1) and len(str(refused.value)) < 400


def test_a_declared_identity_is_no_encoding() -> None:
    assert read(Sender([b"1"]), JSON, ("content-encoding", "Identity")) == b"1"


UNCLEAR: list[Pairs] = [
    *((((LENGTH, each),)) for each in ("+5", "-1", "5_0", " 5", "0x5", "5.0", "", "five", "5,5", "\xb2")),
    ((LENGTH, "5"), (LENGTH, "5")), ((LENGTH, "5"), (LENGTH, "6")), ((LENGTH, "5"), ("transfer-encoding", "chunked")),
]  # fmt: skip


@pytest.mark.parametrize("pairs", UNCLEAR, ids=lambda parts: ascii(parts)[:40])
def test_a_length_that_may_be_understood_in_two_ways_is_refused_unread(pairs: Pairs) -> None:
    sender = Sender([b"12345"])
    with pytest.raises(InvalidRequest) as refused:
        read(sender, JSON, *pairs)
    assert (refused.value.status, refused.value.closes, len(sender.left)) == (400, True, 1)


@pytest.mark.parametrize("length", ["101", "1000000", "9" * 400, "0" * 20 + "1"])
def test_a_length_beyond_the_limit_is_refused_unread(length: str) -> None:
    sender = Sender([b"1"])
    with pytest.raises(RequestTooLarge) as refused:
        read(sender, JSON, (LENGTH, length))
    assert (refused.value.status, refused.value.closes, len(sender.left)) == (413, True, 1)


@pytest.mark.parametrize("told", [(), ((LENGTH, "3"),)], ids=["untold", "lying"])
def test_a_body_that_grows_beyond_the_limit_is_read_no_further(told: Pairs) -> None:
    sender = Sender([b"1" * 60] * 9)
    with pytest.raises(RequestTooLarge):
        read(sender, JSON, *told)
    assert len(sender.left) == 7


@pytest.mark.parametrize("length", ["4", "6"])
def test_a_body_of_another_length_than_told_is_refused(length: str) -> None:
    with pytest.raises(InvalidRequest, match="has 5 bytes, and Content-Length says") as refused:
        read(Sender([b"12", b"345"]), JSON, (LENGTH, length))
    assert refused.value.closes


def test_a_body_of_the_longest_length_is_taken() -> None:
    assert len(read(Sender([b"1" * 50, b"2" * 50]), JSON)) == 100


@pytest.mark.parametrize(
    "parts",
    [
        [60.0, b"1"], [b"1", 60.0, b"2"], [b"1", 5.1, b"2"], [5.1, b"1"], [b"12345", *[1.0, b"1"] * 60],
        [b"1" * 999, 7.1, b"1"], [*[1.1, b"1" * 999] * 10], [b"", 20.0],
    ],
    ids=lambda parts: ascii(parts)[:40],
)  # fmt: skip
def test_a_body_that_trickles_is_refused(parts: list[bytes | float | None]) -> None:
    with pytest.raises(RequestTooSlow) as refused:
        read(Sender([*parts, b"."]), JSON, bytes_max=10_000)
    assert (refused.value.status, refused.value.closes, refused.value.repeat) == (408, True, "yes")


@pytest.mark.parametrize(
    "parts",
    [[4.9, b"1"], [b"1" * 999, 6.9, b"1"], [*[0.9, b"1" * 999] * 10]],
    ids=lambda parts: ascii(parts)[:40],
)
def test_a_body_that_comes_slowly_but_in_time_is_taken(parts: list[bytes | float | None]) -> None:
    assert read(Sender(parts), JSON, bytes_max=10_000)


def test_a_sender_that_never_lets_the_loop_turn_is_ended_too() -> None:
    sent = 0

    async def nothing_at_once() -> dict[str, object]:
        nonlocal sent
        sent += 1
        loop = asyncio.get_running_loop()
        assert isinstance(loop, MovedLoop)
        loop.moved.now += 1.0
        return {"type": "http.request", "body": b"", "more_body": True}

    with pytest.raises(RequestTooSlow):
        read(nothing_at_once, JSON)
    assert sent < 20


@pytest.mark.parametrize(
    "parts", [[None], [b"1", None], [b"1", 1.0, None]], ids=lambda parts: ascii(parts)[:40]
)
def test_who_hangs_up_is_gone(parts: list[bytes | float | None]) -> None:
    with pytest.raises(Gone) as gone:
        read(Sender([*parts, b""]), JSON, (LENGTH, "5"))
    assert not isinstance(gone.value, FencerowError)  # nobody is there to be told


def test_a_body_in_single_bytes_costs_no_more_than_its_length() -> None:
    sender = Sender([b"1"] * 20_000)
    tracemalloc.start()
    try:
        assert len(read(sender, JSON, bytes_max=20_000)) == 20_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * 20_000 + 100_000
