"""What a receiver does with a webhook before anything else: whether it is from whom it says, unaltered, and of now."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

from fencerow.core.errors import InvalidInput
from fencerow.core.model.instants import instant_us
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.web.webhooks.errors import WebhookRefusal, WebhookRefused
from fencerow.web.webhooks.pairs import PUBLIC, PublicKey
from fencerow.web.webhooks.seen import SeenWebhooks
from fencerow.web.webhooks.signing import HEADERS, ID, SECRETS_MAX, WebhookSecret, check_count

Key = str | WebhookSecret | PublicKey

TOLERANCE_S: Final = 300.0
TIMESTAMP: Final = re.compile(r"0|[1-9][0-9]{0,11}")
SIGNATURES: Final = re.compile(r"[\x20-\x7e]+")
FORMS: Final[dict[str, re.Pattern[str]]] = dict(zip(HEADERS, (ID, TIMESTAMP, SIGNATURES), strict=True))


def verify_webhook(
    headers: Mapping[str, str],
    body: bytes,
    secrets: Key | Sequence[Key],
    *,
    tolerance_s: Seconds = TOLERANCE_S,
    now: datetime | None = None,
    seen: SeenWebhooks | None = None,
) -> None:
    """Return if a webhook is from who has one of the secrets, is unaltered and of now. Call it before anything else.

    A secret is `whsec_…`; of an endpoint that signs with a key pair it is the public key, `whpk_…`. While a secret is
    replaced, give both. `body` is the body as it came: neither decoded, nor written anew from what was parsed. `now` is
    the time to compare with, by default that of this machine.

    With `seen` the same message passes once. A webhook that is tried again has its old id and a new timestamp, and
    passes: it comes again if your answer was lost. So keep the ids of those you have worked off, and answer them 2xx.

    Raises:
        WebhookRefused: it is not, whatever is wrong with it; `reason` says what. Answer 400, and do nothing.
        InvalidInput: a secret, `now`, or the kind of `body` is wrong: a fault of the receiver, not of the message.
        MissingExtra: a public key was given, and `cryptography` is not installed.
    """
    keys = _keys(secrets)
    given: object = body
    if not isinstance(given, (bytes, bytearray, memoryview)):
        raise InvalidInput(
            f"the body of a webhook is of type {type(given).__name__}",
            "its bytes as they came are expected, for these were signed",
            "pass the raw body of the request",
        )
    message_id, timestamp, signatures = (_one(headers, name) for name in HEADERS)
    now_s = time.time() if now is None else instant_us(now, "now") / 1_000_000
    either_s = in_seconds(tolerance_s)
    _check_age(int(timestamp), now_s, either_s)
    judges = [key.judge(message_id, timestamp, body) for key in keys]
    if not _any_right(
        judges, [each.encode("ascii") for each in signatures.split(" ", SECRETS_MAX)][:SECRETS_MAX]
    ):
        raise _refused(WebhookRefusal.SIGNATURE, "no signature of this webhook is right")
    if seen is not None and not seen.first(f"{message_id}.{timestamp}", int(timestamp) + either_s, now_s):
        raise _refused(WebhookRefusal.REPLAYED, "this very webhook came before")


def _keys(secrets: Key | Sequence[Key]) -> list[WebhookSecret | PublicKey]:
    several = [secrets] if isinstance(secrets, (str, WebhookSecret, PublicKey)) else secrets
    check_count(several)
    return [_key(each) for each in several]


def _key(given: Key) -> WebhookSecret | PublicKey:
    if not isinstance(given, str):
        return given
    return PublicKey.parsed(given) if given.startswith(PUBLIC) else WebhookSecret.parsed(given)


def _one(headers: Mapping[str, str], name: str) -> str:
    """The value of a header, if it stands there once and is well-formed."""
    values: list[object] = [value for key, value in headers.items() if str(key).lower() == name]
    if not values:
        raise _refused(WebhookRefusal.HEADERS, f"the header {name} is missing")
    if len(values) > 1:
        raise _refused(WebhookRefusal.HEADERS, f"the header {name} comes more than once")
    value = values[0]
    if not isinstance(value, str) or not FORMS[name].fullmatch(value):
        raise _refused(WebhookRefusal.HEADERS, f"the header {name} is malformed")
    return value


def _check_age(timestamp_s: int, now_s: float, tolerance_s: float) -> None:
    if timestamp_s < now_s - tolerance_s:
        raise _refused(WebhookRefusal.TOO_OLD, f"the webhook is more than {tolerance_s:g} s old")
    if timestamp_s > now_s + tolerance_s:
        raise _refused(WebhookRefusal.TOO_NEW, f"the webhook is more than {tolerance_s:g} s ahead")


def _any_right(judges: Sequence[Callable[[bytes], bool]], given: Sequence[bytes]) -> bool:
    """All with all, so that the time says nothing of which."""
    right = [judge(one) for judge in judges for one in given]
    return any(right)


def _refused(reason: WebhookRefusal, what: str) -> WebhookRefused:
    return WebhookRefused(
        what,
        "a webhook is believed if it is signed with a secret of this receiver, of now, and comes once",
        "answer 400 and do nothing; if all are refused, compare the secret and the clock, and pass the raw body",
        reason=reason,
    )
