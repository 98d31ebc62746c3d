"""Senders that are killed, receivers that are away: each end is told at least once, under one id, and none is lost."""

from __future__ import annotations

import os
import signal

import pytest

from fencerow import App
from fencerow.core.config import CoreConfig
from fencerow.testing import drain
from fencerow.testing.clock import DatabaseClock
from tests.kit.forking import context
from tests.kit.pace import PATIENCE_S
from tests.web.webhooks.sender import work
from tests.web.webhooks.stage import Answer, Got, Receiver, end, hooks_of


def test_what_a_killed_sender_had_sent_is_sent_again_under_its_id(
    app: App, receiver: Receiver, moved: DatabaseClock
) -> None:
    hooks = hooks_of(app)
    hooks.add("shop", receiver.url)
    app.jobs["send"].submit("ada")
    sender = context.Process(target=work, args=(app.config.url, receiver.url))

    def killing(_got: Got) -> Answer:
        assert sender.pid is not None
        os.kill(sender.pid, signal.SIGKILL)  # between the POST and the note
        sender.join(PATIENCE_S)
        return 200, {}

    receiver.answer = killing
    sender.start()
    with receiver.came:
        assert receiver.came.wait_for(lambda: receiver.got, PATIENCE_S)
    sender.join(PATIENCE_S)
    assert [each.state for each in hooks.deliveries()] == ["pending"]

    receiver.answer = lambda _got: (200, {})
    moved.advance(CoreConfig().lease_s + 30)
    drain(app)

    assert len(receiver.got) == 2 and len({(each.id, each.body) for each in receiver.got}) == 1
    assert [each.state for each in hooks.deliveries()] == ["delivered"]


@pytest.mark.parametrize("kind", ["refuses", "resets", "is slow", "asks to wait"])
def test_a_receiver_that_is_away_for_an_hour_gets_each_once(
    app: App, receiver: Receiver, moved: DatabaseClock, kind: str
) -> None:
    answers: dict[str, Answer | None] = {
        "refuses": (503, {}),
        "resets": None,
        "asks to wait": (429, {"retry-after": "900"}),
    }
    hooks = hooks_of(app)
    hooks.add("shop", receiver.url, timeout_s=1)
    receiver.answer = lambda _got: receiver.hold() if kind == "is slow" else answers[kind]
    ids = end(app, *(["ada"] if kind == "is slow" else ["ada", "nobody"]))
    for _ in range(2):
        moved.advance(1800)
        drain(app)

    receiver.free.set()
    before = len(receiver.got)
    receiver.answer = lambda _got: (200, {})
    for _ in range(2):
        moved.advance(3700)
        drain(app)

    taken = receiver.got[before:]
    assert sorted(each.document["data"]["job"] for each in taken) == sorted(ids)
    assert {each.id for each in taken} == {each.id for each in receiver.got}
    assert {each.state for each in hooks.deliveries()} == {"delivered"}
