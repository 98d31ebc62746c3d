"""How others sign their webhooks, computed here from what they publish."""

from __future__ import annotations

import base64
import hmac
import time
from collections.abc import Sequence

GITHUB, STRIPE, STANDARD = "a secret of GitHub", "whsec_of_stripe_0123456789", "whsec_" + "QUJD" * 10
Pairs = list[tuple[str, str]]


def github(
    body: bytes,
    secret: str = GITHUB,
    *,
    delivery: str = "72d3162e-cc78-11e3-81ab-4c9367dc0958",
    kind: str = "push",
) -> Pairs:
    signed = hmac.digest(secret.encode(), body, "sha256").hex()
    return [
        ("X-GitHub-Delivery", delivery),
        ("X-GitHub-Event", kind),
        ("X-Hub-Signature-256", f"sha256={signed}"),
    ]


def stripe(body: bytes, *secrets: str, at: float | None = None) -> Pairs:
    timestamp = int(time.time() if at is None else at)
    text = f"{timestamp}.".encode() + body
    signed = [f"v1={hmac.digest(each.encode(), text, 'sha256').hex()}" for each in secrets or (STRIPE,)]
    return [("Stripe-Signature", ",".join([f"t={timestamp}", "v0=" + "0" * 64, *signed]))]


def standard(body: bytes, *secrets: str, message_id: str = "msg_1", at: float | None = None) -> Pairs:
    timestamp = int(time.time() if at is None else at)
    text = f"{message_id}.{timestamp}.".encode() + body
    keys: Sequence[bytes] = [base64.b64decode(each.removeprefix("whsec_")) for each in secrets or (STANDARD,)]
    signed = [f"v1,{base64.b64encode(hmac.digest(key, text, 'sha256')).decode()}" for key in keys]
    return [
        ("webhook-id", message_id),
        ("webhook-timestamp", str(timestamp)),
        ("webhook-signature", " ".join(signed)),
    ]
