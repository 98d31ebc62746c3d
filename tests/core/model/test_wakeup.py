from __future__ import annotations

import json

import pytest

from fencerow.core.model.ids import new_id
from fencerow.core.model.wakeup import CancelAsked, JobsEnded, Queued, decode, encode, encode_ended


@pytest.mark.parametrize(
    "message",
    [Queued("mail", -3, 1_700_000_000_000_000), JobsEnded(("a", "b")), CancelAsked("holder", "job")],
)
def test_a_message_comes_back_as_it_was(message: Queued | JobsEnded | CancelAsked) -> None:
    assert decode(encode(message)) == message


def test_the_texts_are_those_that_other_versions_know() -> None:
    assert json.loads(encode(Queued("q", 1, 2))) == {"k": "queued", "q": "q", "p": 1, "t": 2}
    assert json.loads(encode(JobsEnded(("a",)))) == {"k": "ended", "ids": ["a"]}
    assert json.loads(encode(CancelAsked("x", "y"))) == {"k": "cancel", "h": "x", "id": "y"}


@pytest.mark.parametrize(
    "text", ["", "nonsense", "{}", '{"k":"tomorrow"}', '{"k":"queued"}', '{"k":"ended","ids":7}', "\ud800"]
)
def test_what_is_not_understood_is_passed_over(text: str) -> None:
    assert decode(text) is None


def test_a_newer_sender_may_add_fields() -> None:
    assert decode('{"k":"ended","ids":["a"],"more":1}') == JobsEnded(("a",))


def test_many_ended_ids_are_split_below_the_size_a_notification_may_have() -> None:
    ids = [new_id() for _ in range(1001)]

    texts = encode_ended(ids)

    assert all(len(text.encode()) < 7_000 for text in texts)
    heard = [decode(text) for text in texts]
    assert [each for message in heard if isinstance(message, JobsEnded) for each in message.ids] == ids
