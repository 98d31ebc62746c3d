"""Inbound events: brought again, brought under another id, malformed, and while the database is away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from examples.chatbot.web import Refused, post
from tests.whole.chatbot.conftest import Chatbot
from tests.whole.chatbot.test_reading import SOURCES

ON_BOTH = pytest.mark.parametrize("databases", ["sqlite", "postgres"], indirect=True)
EVENT = {"id": "ev-1", "workspace": "harbour", "sender": "+491", "text": "May I ride on the beach?"}


@pytest.fixture
def webhook(chatbot: Chatbot) -> Iterator[str]:
    with chatbot.receiver.listening() as url:
        yield url


def brought(webhook: str, event: dict[str, Any]) -> Any:
    return post(webhook, event)["fresh"]


@ON_BOTH
async def test_an_event_is_answered_once_by_what_is_known(chatbot: Chatbot, webhook: str) -> None:
    await chatbot.knowledge.index.asubmit("harbour", "terms.pdf", str(SOURCES / "rental_terms.pdf"), 1)
    await chatbot.work()

    assert [brought(webhook, EVENT) for _ in range(3)] == [True, False, False]
    assert not brought(webhook, {**EVENT, "id": "ev-1-again"})
    await chatbot.work()

    (answer,) = chatbot.world.delivered.values()
    assert answer["to"] == "+491"
    assert "The beach is forbidden" in answer["text"]


async def test_redelivered_after_the_window_it_is_known_by_its_id(chatbot: Chatbot, webhook: str) -> None:
    assert brought(webhook, EVENT)
    chatbot.clock.advance(chatbot.inbound.SAME_WITHIN_S + 1)

    assert not brought(webhook, EVENT), "the key of the job lives longer than the window"
    chatbot.clock.advance(chatbot.inbound.SAME_WITHIN_S + 1)
    assert brought(webhook, {**EVENT, "id": "ev-2"}), "the same question on another day is a new one"


async def test_the_same_words_of_another_person_are_another_event(chatbot: Chatbot, webhook: str) -> None:
    assert brought(webhook, EVENT)
    assert brought(webhook, {**EVENT, "id": "ev-2", "sender": "+492"})


@pytest.mark.parametrize("event", [{"id": "ev-1"}, {**EVENT, "text": 17}, "hello"])
async def test_what_is_no_event_is_refused(chatbot: Chatbot, webhook: str, event: Any) -> None:
    with pytest.raises(Refused) as caught:
        post(webhook, event)

    assert caught.value.status_code == 400
    assert await chatbot.app.client.alist_jobs() == []


async def test_what_cannot_be_stored_is_not_accepted(
    chatbot: Chatbot, webhook: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The channel hears 503 and brings it again; nothing of the first time is left in the window."""

    def broken(*_: Any, **__: Any) -> None:
        raise ConnectionError("the database is away")

    with monkeypatch.context() as patch:
        patch.setattr(type(chatbot.inbound.answer.using(key="x")), "submit", broken)
        with pytest.raises(Refused) as caught:
            post(webhook, EVENT)
    assert caught.value.status_code == 503

    assert brought(webhook, EVENT)


@ON_BOTH
async def test_messages_lie_in_the_shard_of_their_workspace(chatbot: Chatbot) -> None:
    for workspace in ("harbour", "airport", "market", "museum"):
        for _ in range(2):
            message = chatbot.messages.Message(f"m-{workspace}", workspace, "+491", "in", "hello")
            chatbot.messages.keep(message)

    found = []
    for url in chatbot.base.SHARDS:
        with chatbot.base.connected(url) as db:
            found.append([row[0] for row in chatbot.base.execute(db, "SELECT workspace FROM messages")])
    assert found == [["museum"], ["airport"], ["harbour"], ["market"]]
