"""What a message comes to: its key, its trace, and what is kept of one that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fencerow import App
from fencerow.events import NewEvent
from fencerow.relay import Message
from fencerow.relay.making import RAW_BYTES_MAX, Maker

HEADERS = {"traceparent": "00-1", "other": "line\nbreak"}


def message(data: bytes = b"7", **more: Any) -> Message:
    return Message("books", "topic", 2, "41", data, "k", HEADERS, after="42", **more)


@pytest.fixture
def app() -> Iterator[App]:
    with App("sqlite:///unused.db") as made:
        yield made


def maker(app: App, function: Any, **more: Any) -> Maker:
    return Maker(app, "books", function, more.get("unread_topic"))


async def test_the_position_is_the_key_and_the_trace_goes_on(app: App) -> None:
    @app.job
    async def book(number: int) -> None: ...

    def take(message: Message) -> Any:
        own = book.using(key="mine").call(number=2)
        return [book.call(number=message.json()), own, NewEvent("seen", 1), book.call(number=3)]

    found = await maker(app, take).reduced(message(), 5)

    keys = [(each.key.scope, each.key.key) for each in found.submissions if each.key]
    assert keys[0] == ("relay", "books/5/topic/2/41") and keys[1][1] == "mine"
    assert keys[2] == ("relay", "books/5/topic/2/41/3"), "two jobs of one message have two keys"
    assert '"traceparent":"00-1"' in str(found.submissions[0].job.template.headers)
    assert found.events[0].headers == {"traceparent": "00-1", "relay-position": "books/5/topic/2/41"}
    assert found.unread is None


async def test_none_is_nothing_and_anything_else_cannot_be_read(app: App) -> None:
    async def later(_: Message) -> Any:
        return None

    assert (await maker(app, later).reduced(message(), 1)).unread is None
    for wrong in ("text", 5, {"a": 1}, [1]):
        found = await maker(app, lambda _, wrong=wrong: wrong).reduced(message(), 1)
        assert found.unread is not None and "FR-104" in found.unread.error


async def test_what_cannot_be_read_is_kept_bounded_and_told_as_an_event(app: App) -> None:
    def broken(_: Message) -> Any:
        raise ValueError("no\nsense")

    found = await maker(app, broken, unread_topic="bad").reduced(message(b"x" * (RAW_BYTES_MAX + 1)), 1)

    assert found.unread is not None and found.unread.bytes == RAW_BYTES_MAX + 1
    assert len(found.unread.raw) == 4 * -(-RAW_BYTES_MAX // 3) and "no\\nsense" in found.unread.error
    (event,) = found.events
    assert event.topic == "bad" and event.key == "k" and event.data["position"] == "41"
