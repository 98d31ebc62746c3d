"""The three schemes: Standard Webhooks, and those of Stripe and GitHub."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal

from fencerow.core.errors import InvalidInput
from fencerow.core.model.seconds import Seconds
from fencerow.web.inbound.errors import InboundRefused, refused
from fencerow.web.inbound.scheme import (
    TIMESTAMP,
    TOLERANCE_S,
    Came,
    Scheme,
    Told,
    check_age,
    check_signed,
    id_of,
    kind_of,
)
from fencerow.web.webhooks.errors import WebhookRefusal, WebhookRefused
from fencerow.web.webhooks.pairs import PUBLIC, PublicKey
from fencerow.web.webhooks.signing import HEADERS, WebhookSecret
from fencerow.web.webhooks.verifying import verify_webhook

YEAR_S: Final = 365 * 86_400.0
PARTS_MAX: Final = 32
SIGNATURES_MAX: Final = 16
HEX: Final = re.compile(r"[0-9a-f]{64}")


class StandardWebhooks(Scheme):
    """Standard Webhooks 1.0: `webhook-id`, `webhook-timestamp` and `webhook-signature`. Fencerow signs its own so.

    A secret is `whsec_…`, or the public key of a sender that signs with a pair, `whpk_…`. The kind is the field `type`.
    """

    title = "Standard Webhooks"

    def key(self, text: str) -> Any | None:
        """The secret, or the public key."""
        try:
            return PublicKey.parsed(text) if text.startswith(PUBLIC) else WebhookSecret.parsed(text)
        except InvalidInput:
            return None

    def read(self, keys: Sequence[Any], came: Came) -> Told:
        """Verified as our own receivers verify it."""
        found = {name: came.one(name) for name in HEADERS}
        now = datetime.fromtimestamp(came.now_s, UTC)
        try:
            verify_webhook(found, came.body, keys, tolerance_s=self.tolerance_s, now=now)
        except WebhookRefused as error:
            raise refused(error.reason, error.what) from None
        payload = came.payload
        kind = payload.get("type") if isinstance(payload, dict) else None
        message_id, timestamp, _ = found.values()
        return Told(message_id, kind_of(kind), payload, float(timestamp))


class Stripe(Scheme):
    """As Stripe signs: `Stripe-Signature: t=…,v1=…`. The id is the event's `id`, and the kind its `type`."""

    title = "Stripe"

    def read(self, keys: Sequence[Any], came: Came) -> Told:
        """Its id and kind are in its event."""
        timestamp, signatures = _parts(came.one("stripe-signature"))
        check_age(int(timestamp), came.now_s, self.tolerance_s)
        check_signed(keys, f"{timestamp}.".encode() + came.body, signatures)
        payload = came.payload
        event = payload if isinstance(payload, dict) else {}
        event_id = id_of(event.get("id"), "the field `id` of its event")
        return Told(event_id, kind_of(event.get("type")), payload, float(timestamp))


class GitHub(Scheme):
    """As GitHub signs: `X-Hub-Signature-256: sha256=…`. The id is `X-GitHub-Delivery`, and the kind `X-GitHub-Event`.

    Only the body is signed there: no time, and neither of these two headers. So who has recorded a webhook could send
    it again under another id. With `id_from="body"` the id is the SHA-256 of the body: the same body is taken once,
    whatever its headers say. It also serves senders that sign in this way and give no id. An id is remembered for a
    year.
    """

    title = "GitHub"
    remembered_s = YEAR_S

    def __init__(
        self,
        *secrets: str,
        tolerance_s: Seconds = TOLERANCE_S,
        id_from: Literal["delivery", "body"] = "delivery",
    ) -> None:
        super().__init__(*secrets, tolerance_s=tolerance_s)
        self.id_from = id_from

    def read(self, keys: Sequence[Any], came: Came) -> Told:
        """Its id and kind are in headers that nobody signed."""
        name, _, signature = came.one("x-hub-signature-256").partition("=")
        if name != "sha256" or not HEX.fullmatch(signature):
            raise _malformed("x-hub-signature-256")
        check_signed(keys, came.body, [signature])
        events = came.headers.get("x-github-event", ())
        return Told(self._id(came), kind_of(events[0] if len(events) == 1 else None), came.payload)

    def _id(self, came: Came) -> str:
        if self.id_from == "body":
            return hashlib.sha256(came.body).hexdigest()
        return id_of(came.one("x-github-delivery"), "X-GitHub-Delivery")


def _parts(value: str) -> tuple[str, list[str]]:
    """The time and the signatures of the scheme `v1`; those of other schemes are passed over."""
    parts = [part.strip().partition("=") for part in value.split(",", PARTS_MAX)]
    times = [given for name, _, given in parts if name == "t"]
    signatures = [given for name, _, given in parts if name == "v1"]
    if len(parts) > PARTS_MAX or len(times) != 1 or not TIMESTAMP.fullmatch(times[0]):
        raise _malformed("stripe-signature")
    if not 1 <= len(signatures) <= SIGNATURES_MAX or not all(map(HEX.fullmatch, signatures)):
        raise _malformed("stripe-signature")
    return times[0], signatures


def _malformed(name: str) -> InboundRefused:
    return refused(WebhookRefusal.HEADERS, f"the header {name} is malformed")
