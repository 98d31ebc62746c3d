"""A broadcast: each recipient once in the ledger, and what the border to the channel can give and what not."""

from __future__ import annotations

import pytest

from fencerow import State
from tests.whole.chatbot.conftest import Chatbot

ON_BOTH = pytest.mark.parametrize("databases", ["sqlite", "postgres"], indirect=True)
ADDRESSES = [f"+49{number}" for number in range(120)]


@ON_BOTH
async def test_everybody_is_sent_to_once(chatbot: Chatbot) -> None:
    assert chatbot.broadcast.start("spring", "harbour", "Hello", [*ADDRESSES, "+0001"]) == 3

    await chatbot.work()

    assert chatbot.broadcast.counts("spring") == {"sent": 120, "failed": 1}
    assert sorted(each["to"] for each in chatbot.world.delivered.values()) == sorted(ADDRESSES)
    assert chatbot.world.repeated == chatbot.world.unkeyed == 0
    (failed,) = chatbot.rows("SELECT error FROM recipients WHERE state = 'failed'")
    assert failed == ("the channel answered 422",)
    for size in chatbot.rows("SELECT count(*) FROM recipients GROUP BY batch"):
        assert size[0] <= chatbot.broadcast.BATCH_MAX


@ON_BOTH
async def test_the_table_is_what_the_ledger_declares(chatbot: Chatbot) -> None:
    await chatbot.broadcast.ledger.acheck()

    step = (chatbot.base.STEPS / "main" / "0002_broadcasts.sql").read_text("utf-8")
    assert chatbot.broadcast.ledger.constraint_sql("sqlite") in step


async def test_a_recipient_that_takes_each_worker_along_is_given_up(chatbot: Chatbot) -> None:
    chatbot.broadcast.start("spring", "harbour", "Hello", ADDRESSES[:3])
    first = {"broadcast": "spring", "batch": 0}
    for _ in range(chatbot.broadcast.CLAIMS_MAX):
        (taken,) = await chatbot.broadcast.ledger.atake("send", params=first)
        assert taken["id"] == "spring/+490"
        chatbot.clock.advance(chatbot.broadcast.LEASE_S + 1)

    assert (await chatbot.broadcast.ledger.areap()).moved["give_up"]
    await chatbot.work()

    assert chatbot.broadcast.counts("spring") == {"sent": 2, "failed": 1}


async def test_started_twice_it_is_one_broadcast(chatbot: Chatbot) -> None:
    for _ in range(2):
        chatbot.broadcast.start("spring", "harbour", "Hello", ADDRESSES)

    await chatbot.work()

    assert len(chatbot.world.delivered) == chatbot.world.requests == len(ADDRESSES)
    assert len(await chatbot.app.client.alist_jobs()) == 3


@ON_BOTH
async def test_a_channel_that_is_down_is_told_and_waited_for(chatbot: Chatbot) -> None:
    chatbot.world.failing = 2
    chatbot.broadcast.start("spring", "harbour", "Hello", ADDRESSES[:50])
    (job,) = await chatbot.app.client.alist_jobs()

    for _ in range(3):
        await chatbot.work()
        chatbot.clock.advance(10)

    ended = await chatbot.app.client.aget(job.id)
    assert (ended.state, ended.failures) == (State.SUCCEEDED, 2)
    assert chatbot.broadcast.counts("spring") == {"sent": 50}
    assert len(chatbot.world.delivered) == 50


async def delivered_and_not_noted(chatbot: Chatbot) -> None:
    """A worker dies after the channel has delivered, and before the ledger says so; then another takes over."""
    chatbot.broadcast.start("spring", "harbour", "Hello", ADDRESSES[:50])
    (taken,) = await chatbot.broadcast.ledger.atake("send", params={"broadcast": "spring", "batch": 0})
    message = chatbot.messages.Message(taken["id"], "harbour", taken["address"], "out", "Hello")
    chatbot.messages.deliver(message)
    for _ in range(2):
        await chatbot.work()
        chatbot.clock.advance(chatbot.broadcast.LEASE_S + 1)
    assert chatbot.broadcast.counts("spring") == {"sent": 50}


@ON_BOTH
async def test_what_was_delivered_and_not_noted_is_asked_for_again_under_its_key(chatbot: Chatbot) -> None:
    await delivered_and_not_noted(chatbot)

    assert chatbot.world.repeated == 1
    assert len(chatbot.world.delivered) == 50


async def test_a_channel_without_keys_delivers_it_twice(chatbot: Chatbot) -> None:
    """At least once is what anybody can promise at this border; the count of the other tests would show a second."""
    chatbot.world.honours_keys = False

    await delivered_and_not_noted(chatbot)

    assert len(chatbot.world.delivered) == 51


async def test_who_slept_through_the_lease_can_note_nothing(chatbot: Chatbot) -> None:
    chatbot.broadcast.start("spring", "harbour", "Hello", ADDRESSES[:1])
    params = {"broadcast": "spring", "batch": 0}
    (sleeper,) = await chatbot.broadcast.ledger.atake("send", params=params)
    chatbot.clock.advance(chatbot.broadcast.LEASE_S + 1)
    (other,) = await chatbot.broadcast.ledger.atake("send", params=params)

    move = chatbot.broadcast.ledger.amove
    assert await move("refuse", sleeper["id"], fence=sleeper["claims"], values={"error": "too late"}) is None
    assert (await move("confirm", other["id"], fence=other["claims"], values={"message": "m-1"}))[
        "state"
    ] == "sent"
