"""Signatures are those of Standard Webhooks, and no secret is shown by accident."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from fencerow.core.errors import InvalidInput
from fencerow.web.webhooks.signing import WebhookSecret, signed_headers

# As the libraries of Standard Webhooks have it in their own tests.
PUBLISHED_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PUBLISHED_ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
PUBLISHED_BODY = b'{"test": 2432232314}'
PUBLISHED_SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_published_message_is_signed_as_published() -> None:
    headers = signed_headers(
        PUBLISHED_ID, 1614265330, PUBLISHED_BODY, [WebhookSecret.parsed(PUBLISHED_SECRET)]
    )

    assert headers == {
        "webhook-id": PUBLISHED_ID,
        "webhook-timestamp": "1614265330",
        "webhook-signature": PUBLISHED_SIGNATURE,
    }


@pytest.mark.parametrize("body", ["", "{}", '{"say": "é €"}', "a\r\n\x00"])
def test_each_live_secret_signs_as_the_library_of_the_standard(body: str) -> None:
    old, new = WebhookSecret.new(), WebhookSecret.new()
    now = datetime.now(UTC).replace(microsecond=0)

    headers = signed_headers("msg_1", int(now.timestamp()), body.encode(), [new, old])

    theirs = [Webhook(secret.text).sign("msg_1", now, body) for secret in (new, old)]
    assert headers["webhook-signature"].split(" ") == theirs
    for secret in (new, old):
        Webhook(secret.text).verify(body, headers, json_parse=False)


def test_a_secret_is_shown_on_demand_only() -> None:
    secret = WebhookSecret.new()

    assert len(secret.key) == 32 and secret != WebhookSecret.new()
    assert WebhookSecret.parsed(secret.text) == WebhookSecret.parsed(secret.text.rstrip("=")) == secret
    for shown in (repr(secret), str(secret), f"{secret}", repr({"secret": secret})):
        assert secret.text[6:] not in shown and repr(secret.key) not in shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "whsec_",
        "whsec_" + base64.b64encode(bytes(23)).decode(),
        "whsec_" + base64.b64encode(bytes(65)).decode(),
        base64.b64encode(bytes(32)).decode(),
        "whsk_" + base64.b64encode(bytes(32)).decode(),
        "whsec_" + base64.b64encode(bytes(30)).decode() + "\n",
        "whsec_" + "é" * 40,
        "whsec_" + "-_" * 20,
        "whsec_" + "A" * 41,
    ],
)
def test_what_is_no_secret_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be read") as refused:
        WebhookSecret.parsed(text)

    assert not text or text not in str(refused.value) or text == "whsec_"


@pytest.mark.parametrize("identity", ["", "a.b", "a b", "a\nb", "é", "x" * 257])
def test_an_id_that_cannot_be_signed_is_refused(identity: str) -> None:
    with pytest.raises(InvalidInput, match="id of a webhook"):
        signed_headers(identity, 1, b"", [WebhookSecret.new()])


@pytest.mark.parametrize("count", [0, 17])
def test_nothing_is_sent_unsigned(count: int) -> None:
    with pytest.raises(InvalidInput, match="secrets of a webhook"):
        signed_headers("msg_1", 1, b"", [WebhookSecret.new()] * count)
