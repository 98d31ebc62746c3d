"""The order in which `fencerow serve` stops."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

import pytest
from starlette.types import Receive, Scope, Send

from fencerow import App
from fencerow.cli import doors
from fencerow.cli.doors import ServedAt
from fencerow.supervisor.probes import ProbeAddress, listening
from fencerow.web.gateway.asgi import Gateway
from tests.web.gateway.conftest import Door
from tests.web.gateway.serving import answered, submit_of, until

BODY = b'{"job": "pages", "args": {"path": "a.pdf"}}'


class Told:
    """In place of the signals of this process: whoever has it tells the server to leave."""

    leave: Callable[[str], None]

    def __init__(self, _numbers: object, leave: Callable[[str], None]) -> None:
        Told.leave = leave

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


class Kept(Gateway):
    """A gateway that tells what becomes of the requests that come to it."""

    def __init__(self, app: App, door: Door, told: list[str]) -> None:
        super().__init__(app, authorize=door)
        self._told = told

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._told.append("came")
        await super().__call__(scope, receive, send)
        self._told.append("answered")


async def test_the_database_is_closed_when_the_last_request_has_been_answered(
    open_app: App, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen = gc.get_freeze_count()
    told, places, aclose = list[str](), list[str](), open_app.aclose

    async def closed() -> None:
        told.append("closed")
        await aclose()

    monkeypatch.setattr(doors, "Signals", Told)
    monkeypatch.setattr(open_app, "aclose", closed)

    def banner(place: str) -> list[str]:
        places.append(place)
        return [place]

    at = ServedAt(ProbeAddress("127.0.0.1", 0), None, secured=False)
    bound = listening(at.address)
    gateway = Kept(open_app, door, told)
    serving = asyncio.create_task(doors.serve_until_told(open_app, at, bound, lambda: gateway, banner))
    await until(lambda: bool(places))
    assert gc.get_freeze_count() > frozen, (
        "what is there for good is looked at whenever there are many callers"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", int(places[0].rpartition(":")[2]))
    writer.write(submit_of(len(BODY)) + BODY[:5])
    await until(lambda: bool(told))

    Told.leave("SIGTERM")
    await asyncio.sleep(0)
    writer.write(BODY[5:])

    assert (await answered(reader)).startswith(b"HTTP/1.1 202")
    writer.close()
    await serving
    assert told == ["came", "answered", "closed"]
