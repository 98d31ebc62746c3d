"""The store killed at each point of a put and a get: no job without its payload, and no orphan that nobody names."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fencerow import App, Config
from fencerow.errors import StoreUnavailable
from fencerow.payloads import FolderStore, S3Store
from fencerow.payloads.outside.checks import examine_outside
from fencerow.payloads.outside.names import OWNER
from fencerow.payloads.outside.sweeping import Sweep
from tests.payloads.test_outside import LARGE, declare, names

POINTS = ("mkdir", "open", "write", "fsync", "replace", "flush", "flushed")


class Killed(BaseException):
    """The process was killed here."""


@pytest.fixture
async def app(url: str, tmp_path: Path) -> AsyncIterator[App]:
    config = Config(url=url, outside_store=f"file://{tmp_path}/large")
    async with App(url, config=config, actor="ada") as made:
        yield made


def die(*_: Any, **__: Any) -> None:
    raise Killed


def kill_at(point: str, patch: pytest.MonkeyPatch) -> None:
    """Let the next put end at this step."""
    from fencerow.payloads.outside import folder

    match point:
        case "mkdir" | "open" | "replace":
            patch.setattr(Path, point, die)
        case "write":
            real = Path.open

            def half(self: Path, mode: str = "r", *more: Any) -> Any:
                file = real(self, mode, *more)
                if mode == "xb":
                    file.write(b'{"te')
                    file.close()
                    raise Killed
                return file

            patch.setattr(Path, "open", half)
        case "fsync":
            patch.setattr(os, "fsync", die)
        case "flush":
            patch.setattr(folder, "_flush", die)
        case _:
            put = FolderStore.put

            def whole(self: FolderStore, name: str, data: bytes) -> None:
                put(self, name, data)
                raise Killed

            patch.setattr(FolderStore, "put", whole)


@pytest.mark.parametrize("point", POINTS)
def test_a_submit_that_is_killed_leaves_no_job_and_at_most_an_orphan_that_is_named_and_removed(
    app: App, tmp_path: Path, point: str
) -> None:
    echo, store = declare(app), FolderStore(tmp_path / "large")
    kept = echo.submit(LARGE)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        kill_at(point, patch)
        echo.using(key="k").submit(LARGE)
    left = [name for name in names(store) if kept.id not in name]
    assert len(left) == (0 if point in ("mkdir", "open") else 1)

    (finding,) = examine_outside(app.engine, app.config)
    assert all(name in finding.found for name in left)
    looks = Sweep(app.engine, store, 0.0)
    assert [looks.remove(), looks.remove()] == [0, len(left)]
    assert not echo.using(key="k").submit(LARGE).replay, "the submit that was killed stored nothing"
    assert sum(name != OWNER for name in names(store)) == 2


async def test_a_worker_that_is_cut_off_in_a_get_gives_the_job_back(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = await declare(app).asubmit(LARGE)
    real, cuts = Path.open, iter([True])

    def cut(self: Path, mode: str = "r", *more: Any, **named: Any) -> Any:
        if "arguments-" in self.name and mode == "rb" and next(cuts, False):
            raise OSError(5, os.strerror(5))
        return real(self, mode, *more, **named)

    monkeypatch.setattr(Path, "open", cut)
    async with app.worker():
        assert await handle.aresult(60) == LARGE
    record = await handle.arefresh()
    assert (record.failures, record.attempt) == (0, 2)


@contextmanager
def server(answer: Callable[[socket.socket], None]) -> Iterator[S3Store]:
    """A store whose server does this with each connection, and then ends it."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    answer(connection)

        threading.Thread(target=serve, daemon=True).start()
        port = listening.getsockname()[1]
        with pytest.MonkeyPatch.context() as patch:
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
                patch.setenv(name, "test")
            patch.setenv("AWS_MAX_ATTEMPTS", "1")
            yield S3Store.at("jobs", "p", f"endpoint=http://127.0.0.1:{port}&region=us-east-1")
        listening.shutdown(socket.SHUT_RDWR)


def nothing(connection: socket.socket) -> None:
    """Cut at once."""


def heard(connection: socket.socket) -> None:
    """Cut when some of the request has come."""
    connection.recv(1_000)


def half(connection: socket.socket) -> None:
    """Cut in the middle of the answer."""
    connection.recv(65_536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * 500)


@pytest.mark.parametrize("answer", [nothing, heard, half])
def test_a_server_that_goes_away_in_a_get_is_away(answer: Callable[[socket.socket], None]) -> None:
    with server(answer) as store, pytest.raises(StoreUnavailable):
        store.get("a", 1_000)


@pytest.mark.parametrize("answer", [nothing, heard])
def test_a_server_that_goes_away_in_a_put_is_away(answer: Callable[[socket.socket], None]) -> None:
    with server(answer) as store, pytest.raises(StoreUnavailable):
        store.put("a", b"x" * 100_000)


async def test_an_event_loop_goes_on_while_a_store_is_slow(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """A put and a get wait on threads: else what releases this one would never run."""
    free = threading.Event()
    real = FolderStore.put

    def slow(self: FolderStore, name: str, data: bytes) -> None:
        assert free.wait(30)
        real(self, name, data)

    monkeypatch.setattr(FolderStore, "put", slow)
    echo = declare(app)
    asyncio.get_running_loop().call_later(0.05, free.set)
    handle = await echo.asubmit(LARGE)
    free.clear()
    async with app.worker():
        asyncio.get_running_loop().call_later(0.5, free.set)
        assert await handle.aresult(60) == LARGE


@pytest.mark.parametrize("pages", [1, 2])
async def test_a_page_of_a_proxy_is_no_altered_object(
    app: App, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    """The second read is right; or each brings another page, so that the store counts as away."""
    answers = iter([f"<html>bad gateway, request {n}</html>".encode() for n in range(pages)])
    real = FolderStore.get

    def get(self: FolderStore, name: str, bytes_max: int) -> bytes:
        return (next(answers, None) if "/arguments-" in name else None) or real(self, name, bytes_max)

    handle = await declare(app).asubmit(LARGE)
    monkeypatch.setattr(FolderStore, "get", get)
    async with app.worker():
        assert await handle.aresult(60) == LARGE
    record = await handle.arefresh()
    assert (record.failures, record.attempt) == (0, pages)


def test_the_age_of_an_object_is_reckoned_by_the_clock_that_dates_it() -> None:
    """This host's may be years off; so is that of this server."""

    class Client:
        def list_objects_v2(self, **_: Any) -> dict[str, Any]:
            return {
                "ResponseMetadata": {"HTTPHeaders": {"date": "Sat, 01 Jan 2000 00:01:00 GMT"}},
                "Contents": [{"Key": "p/a", "LastModified": datetime(2000, 1, 1, tzinfo=UTC)}],
            }

    (found,) = S3Store(Client(), "bucket", "p").list("")
    assert (found.name, found.age_s) == ("a", 60.0)
