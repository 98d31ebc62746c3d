"""What a receiver believes: every genuine message, and no other, whatever is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.message import Message as Fields
from typing import cast

import pytest

from fencerow.core.errors import InvalidInput
from fencerow.errors import WebhookRefused
from fencerow.web import SeenWebhooks, verify_webhook
from fencerow.web.webhooks.errors import WebhookRefusal
from fencerow.web.webhooks.signing import WebhookSecret, signed_headers
from tests.web.webhooks.messages import NEW, OLD, Message, forged, genuine, unheard_of
from tests.web.webhooks.test_signing import (
    PUBLISHED_BODY,
    PUBLISHED_ID,
    PUBLISHED_SECRET,
    PUBLISHED_SIGNATURE,
)

NOW_S = 1_700_000_000
SECRETS: list[str | WebhookSecret] = [NEW, OLD.text]


def at(now_s: float) -> datetime:
    return datetime.fromtimestamp(now_s, UTC)


NOW = at(NOW_S)


def headers_of(message: Message) -> Mapping[str, str]:
    """Of a kind that may have a name twice, as those of frameworks may."""
    fields = Fields()
    for name, value in message.headers:
        fields[name] = value  # appends
    return cast("Mapping[str, str]", fields)


@pytest.mark.parametrize("message", list(genuine(NOW_S)), ids=lambda message: message.name)
def test_a_genuine_message_passes(message: Message) -> None:
    verify_webhook(dict(message.headers), message.body, SECRETS, now=NOW)


def test_no_other_message_passes_nor_raises_anything_else() -> None:
    messages = [*forged(NOW_S), *unheard_of(NOW_S)]

    passed = [message.name for message in messages if _reason(message) is None]

    assert passed == []
    assert len(messages) > 90
    assert {_reason(message) for message in messages} == set(WebhookRefusal) - {WebhookRefusal.REPLAYED}


def _reason(message: Message) -> WebhookRefusal | None:
    try:
        verify_webhook(headers_of(message), message.body, SECRETS, now=NOW)
    except WebhookRefused as refused:
        return refused.reason
    return None


def test_the_published_message_passes_at_its_time() -> None:
    headers = {
        "Webhook-Id": PUBLISHED_ID,
        "Webhook-Timestamp": "1614265330",
        "Webhook-Signature": PUBLISHED_SIGNATURE,
    }

    for now_s in (1614265030, 1614265630):
        verify_webhook(headers, PUBLISHED_BODY, PUBLISHED_SECRET, now=at(now_s))
    for now_s, reason in ((1614265029, WebhookRefusal.TOO_NEW), (1614265631, WebhookRefusal.TOO_OLD)):
        with pytest.raises(WebhookRefused) as refused:
            verify_webhook(headers, PUBLISHED_BODY, PUBLISHED_SECRET, now=at(now_s))
        assert refused.value.reason is reason


def test_a_message_passes_once_and_its_next_try_passes_too() -> None:
    seen = SeenWebhooks()

    def comes(timestamp_s: int, now_s: int) -> WebhookRefusal | None:
        try:
            headers = signed_headers("msg_1", timestamp_s, b"{}", [NEW])
            verify_webhook(headers, b"{}", NEW, now=at(now_s), seen=seen)
        except WebhookRefused as refused:
            return refused.reason
        return None

    assert comes(NOW_S, NOW_S) is None
    assert comes(NOW_S, NOW_S + 300) is WebhookRefusal.REPLAYED
    assert comes(NOW_S, NOW_S + 301) is WebhookRefusal.TOO_OLD
    assert comes(NOW_S + 301, NOW_S + 301) is None  # the next try, and the first one is forgotten
    assert len(seen) == 1


def test_what_is_refused_is_not_remembered_and_memory_is_bounded() -> None:
    seen = SeenWebhooks(limit=3)

    with pytest.raises(WebhookRefused):
        verify_webhook(signed_headers("msg_1", NOW_S, b"", [OLD]), b"", NEW, now=NOW, seen=seen)
    assert len(seen) == 0
    for number in range(5):
        headers = signed_headers(f"msg_{number}", NOW_S, b"", [NEW])
        verify_webhook(headers, b"", NEW, now=NOW, seen=seen)

    assert (len(seen), seen.forgotten) == (3, 2)


def test_faults_of_the_receiver_are_told_apart() -> None:
    headers = signed_headers("msg_1", NOW_S, b"{}", [NEW])

    for secrets in ([], "whsec_short", [WebhookSecret.new()] * 17):
        with pytest.raises(InvalidInput, match="secret"):
            verify_webhook(headers, b"{}", secrets, now=NOW)
    with pytest.raises(InvalidInput, match="type str"):
        verify_webhook(headers, "{}", NEW, now=NOW)  # type: ignore[arg-type]
