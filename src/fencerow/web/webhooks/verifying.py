"""What a receiver does with a webhook before anything else: whether it is from whom it says, unaltered, and of now."""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from fencerow.core.errors import InvalidInput
from fencerow.core.model.instants import instant_us
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.web.webhooks.errors import Refusal, WebhookRefused
from fencerow.web.webhooks.seen import SeenWebhooks
from fencerow.web.webhooks.signing import (
    HEADERS,
    ID,
    SECRETS_MAX,
    VERSION,
    Secret,
    check_count,
    signature_of,
)

TOLERANCE_S: Final = 300.0
TIMESTAMP: Final = re.compile(r"0|[1-9][0-9]{0,11}")
SIGNATURES: Final = re.compile(r"[\x20-\x7e]+")
FORMS: Final[dict[str, re.Pattern[str]]] = dict(zip(HEADERS, (ID, TIMESTAMP, SIGNATURES), strict=True))


def verify_webhook(
    headers: Mapping[str, str],
    body: bytes,
    secrets: str | Secret | Sequence[str | Secret],
    *,
    tolerance_s: Seconds = TOLERANCE_S,
    now: datetime | None = None,
    seen: SeenWebhooks | None = None,
) -> None:
    """Return if a webhook is from who has one of the secrets, is unaltered and of now. Call it before anything else.

    `body` is the body as it came: neither decoded, nor written anew from what was parsed. While a secret is
    replaced, give both. `now` is the time to compare with, by default that of this machine.

    With `seen` the same message passes once. A webhook that is tried again has its old id and a new timestamp, and
    passes: it comes again if your answer was lost. So keep the ids of those you have worked off, and answer them 2xx.

    Raises:
        WebhookRefused: it is not, whatever is wrong with it; `reason` says what. Answer 400, and do nothing.
        InvalidInput: a secret, `now`, or the kind of `body` is wrong: a fault of the receiver, not of the message.
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
    expected = [signature_of(key, message_id, timestamp, body) for key in keys]
    if not _any_equal(expected, list(_of_our_version(signatures))):
        raise _refused(Refusal.SIGNATURE, "no signature of this webhook is right")
    if seen is not None and not seen.first(f"{message_id}.{timestamp}", int(timestamp) + either_s, now_s):
        raise _refused(Refusal.REPLAYED, "this very webhook came before")


def _keys(secrets: str | Secret | Sequence[str | Secret]) -> list[bytes]:
    several = [secrets] if isinstance(secrets, (str, Secret)) else secrets
    check_count(several)
    return [(one if isinstance(one, Secret) else Secret.parsed(one)).key for one in several]


def _one(headers: Mapping[str, str], name: str) -> str:
    """The value of a header, if it stands there once and is well-formed."""
    values: list[object] = [value for key, value in headers.items() if str(key).lower() == name]
    if not values:
        raise _refused(Refusal.HEADERS, f"the header {name} is missing")
    if len(values) > 1:
        raise _refused(Refusal.HEADERS, f"the header {name} comes more than once")
    value = values[0]
    if not isinstance(value, str) or not FORMS[name].fullmatch(value):
        raise _refused(Refusal.HEADERS, f"the header {name} is malformed")
    return value


def _of_our_version(signatures: str) -> Iterator[bytes]:
    for one in signatures.split(" ", SECRETS_MAX)[:SECRETS_MAX]:
        version, _, signature = one.partition(",")
        if version == VERSION:
            yield signature.encode("ascii")


def _check_age(timestamp_s: int, now_s: float, tolerance_s: float) -> None:
    if timestamp_s < now_s - tolerance_s:
        raise _refused(Refusal.TOO_OLD, f"the webhook is more than {tolerance_s:g} s old")
    if timestamp_s > now_s + tolerance_s:
        raise _refused(Refusal.TOO_NEW, f"the webhook is more than {tolerance_s:g} s ahead")


def _any_equal(expected: Sequence[str], given: Sequence[bytes]) -> bool:
    """Compared as texts, so that there is one way only to write a signature; and all with all, in constant time."""
    equal = [hmac.compare_digest(one.encode("ascii"), other) for one in expected for other in given]
    return any(equal)


def _refused(reason: Refusal, what: str) -> WebhookRefused:
    return WebhookRefused(
        what,
        "a webhook is believed if it is signed with a secret of this receiver, of now, and comes once",
        "answer 400 and do nothing; if all are refused, compare the secret and the clock, and pass the raw body",
        reason=reason,
    )
