"""Connections that wait for their caller: each is bounded in time, and all together in number and in memory."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import pytest

from fencerow import App
from fencerow.web.gateway import places
from fencerow.web.gateway.connection import WRITE_BYTES_MIN, UnreadClock
from fencerow.web.gateway.places import Places
from fencerow.web.settings import WebSettings
from tests.web.gateway.conftest import Door
from tests.web.gateway.serving import (
    LIVE,
    PATIENCE_S,
    Serve,
    answered,
    submit_of,
    until,
    until_ended,
    waited_for,
)


@pytest.mark.parametrize("begun", [b"", b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: "])
async def test_headers_that_never_end_cost_the_connection_and_nobody_else(
    serve: Serve, begun: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with serve(web_headers_timeout_s=0.2) as served:
        for _ in range(3):
            reader, _ = await served.raw(begun)
            await until_ended(reader)

        assert await served.is_serving()
    told = [each.getMessage() for each in caplog.records if "cut off" in each.getMessage()]
    assert told == [
        "a caller was cut off: its headers took longer than 0.2 s",
        "2 more callers were cut off: its headers took longer than 0.2 s",
    ]


async def test_a_second_request_of_a_connection_is_bounded_too(serve: Serve) -> None:
    async with serve(web_headers_timeout_s=0.2, web_idle_timeout_s=PATIENCE_S) as served:
        reader, writer = await served.raw(LIVE)
        await answered(reader)
        writer.write(b"GET /livez HTTP/1.1\r\n")

        await until_ended(reader)


async def test_the_rest_of_a_body_that_was_refused_is_bounded_in_time(serve: Serve, door: Door) -> None:
    door.grant = None
    async with serve(web_headers_timeout_s=0.2) as served:
        reader, writer = await served.raw(submit_of(1000))
        assert b"401" in await answered(reader)
        writer.write(b"{")

        await until_ended(reader)


async def test_the_rest_of_a_body_that_was_refused_is_bounded_in_size(serve: Serve, door: Door) -> None:
    door.grant = None
    async with serve(web_headers_timeout_s=PATIENCE_S, web_body_bytes_max=2048) as served:
        reader, writer = await served.raw(submit_of(2**30))
        assert b"401" in await answered(reader)
        writer.write(b"a" * 4096)

        await until_ended(reader)


async def test_who_is_idle_makes_room_for_a_newcomer(serve: Serve) -> None:
    async with serve(web_connections_max=2, web_idle_timeout_s=PATIENCE_S) as served:
        first, second = [await served.raw(LIVE) for _ in range(2)]
        for reader, _ in (first, second):
            await answered(reader)

        third = await served.raw(LIVE)

        assert b"200 OK" in await answered(third[0])
        await until_ended(first[0])  # it has been idle for longest
        second[1].write(LIVE)
        assert b"200 OK" in await answered(second[0])


async def test_who_has_not_sent_a_whole_request_for_a_while_makes_room_too(
    monkeypatch: pytest.MonkeyPatch, serve: Serve
) -> None:
    async with serve(web_connections_max=2, web_headers_timeout_s=PATIENCE_S) as served:
        slow = [await served.raw(sent) for sent in (b"GET /livez HT", submit_of(1000))]
        await until(lambda: served.unread() > 0 and len(served.server._uvicorn.server_state.tasks) > 0)
        refused, _ = await served.raw(LIVE)
        told = await answered(refused)  # these two have not been slow for long
        assert b" 503 " in told and b"FR-859" in told and b"retry-after" in told
        monkeypatch.setattr(places, "SETTLED_S", 0.0)

        for reader, _ in slow:
            newcomer, _ = await served.raw(LIVE)
            assert b"200 OK" in await answered(newcomer)
            await until_ended(reader)


async def test_newcomers_who_can_have_no_place_are_told_and_at_last_cut_off(
    monkeypatch: pytest.MonkeyPatch, open_app: App, serve: Serve
) -> None:
    monkeypatch.setattr(places, "REFUSED_MAX", 1)
    job_id = (await open_app.asubmit_by_name("pages", {"path": "a"})).id
    async with serve(web_connections_max=1) as served:
        waiting, _ = await served.raw(
            f"GET /v1/jobs/{job_id}?wait=60 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode()
        )
        await until(lambda: waited_for(open_app))
        first, writer = await served.raw(b"GET /livez HT")
        second, _ = await served.raw(b"")

        await until_ended(second)
        writer.write(b"TP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert b" 503 " in await answered(first)
        served.server.leave()
        assert b"200 OK" in await answered(waiting)  # who is served keeps the place


async def test_what_nobody_reads_holds_no_more_than_all_may(
    monkeypatch: pytest.MonkeyPatch, serve: Serve
) -> None:
    monkeypatch.setattr(places, "SETTLED_S", 0.0)
    async with serve(web_unread_bytes_max=64 * 1024, web_write_timeout_s=PATIENCE_S) as served:
        with served.who_reads_nothing():
            await until(lambda: served.connections() == 0)

        assert await served.is_serving()


async def test_whose_answer_has_waited_for_longest_goes_first_and_who_read_it_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = replace(WebSettings(), web_unread_bytes_max=2**20)
    all_places, (reads, waits, waits_less, comes) = Places(settings, 10), [Cuttable() for _ in range(4)]
    for each in (reads, waits, waits_less):
        all_places.unread(each, 2**19)
    assert not waits.is_cut  # it has not waited for long

    all_places.read(reads)
    monkeypatch.setattr(places, "SETTLED_S", 0.0)
    all_places.unread(comes, 10)

    assert [each.is_cut for each in (reads, waits, waits_less, comes)] == [False, True, False, False]


class Cuttable:
    is_cut = False

    def cut(self) -> None:
        self.is_cut = True


async def test_connections_that_outlast_the_time_to_drain_are_ended(serve: Serve) -> None:
    async with serve(web_write_timeout_s=PATIENCE_S) as served:
        with served.who_reads_nothing():
            await until(lambda: served.connections() == 1)
            served.server.leave()
            served.server.leave()
            await served.running

            assert served.connections() == 0


async def test_who_reads_nothing_of_an_answer_is_cut_off(serve: Serve) -> None:
    async with serve(web_write_timeout_s=0.2) as served:
        with served.who_reads_nothing():
            await until(lambda: served.connections() == 0)

        assert await served.is_serving()


async def test_who_reads_slowly_but_enough_is_not_cut_off() -> None:
    transport = Reading(3.5 * WRITE_BYTES_MIN, takes=WRITE_BYTES_MIN)
    all_places = Places(replace(WebSettings(), web_write_timeout_s=0.01), 10)
    waiting = UnreadClock(transport, asyncio.get_running_loop(), all_places)

    waiting.begin()
    await until(lambda: transport.is_aborted)

    assert transport.left == 0.5 * WRITE_BYTES_MIN  # the last look found nothing more taken


class Reading(asyncio.WriteTransport):
    """What waits for a caller who takes so much between two looks, as long as there is so much."""

    def __init__(self, left: float, *, takes: int) -> None:
        super().__init__()
        self.left = left
        self.is_aborted = False
        self._takes = takes
        self._looks = 0

    def get_write_buffer_size(self) -> int:
        self._looks += 1
        if self._looks % 2 == 0 and self.left >= self._takes:
            self.left -= self._takes
        return int(self.left)

    def abort(self) -> None:
        self.is_aborted = True
