"""The signatures of webhooks, as Standard Webhooks 1.0 has them. Those of a key pair: `pairs`.

    webhook-id: msg_…            the same on every try
    webhook-timestamp: seconds   of this try
    webhook-signature: v1,…      base64 of HMAC-SHA256 over `id.timestamp.body`; one for each live secret, in one line

The package `standardwebhooks` is not used, but our tests compare with it. It signs text only, and its `verify` raises
whatever a malformed header brings about: to guard both takes more lines than the signature itself.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets as random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from fencerow.core.errors import InvalidInput
from fencerow.db.text import shown

KEY_BYTES_MIN: Final = 24
KEY_BYTES_MAX: Final = 64
NEW_KEY_BYTES: Final = 32
SECRETS_MAX: Final = 16  # two are usual while one is replaced
HEADERS: Final = ("webhook-id", "webhook-timestamp", "webhook-signature")
PREFIX: Final = "whsec_"
VERSION: Final = "v1"
# No full stop, for it parts what is signed: `a` at 1 with the body `2.b` would be `a.1` at 2 with the body `b`.
ID: Final = re.compile(r"[A-Za-z0-9_:=+/-]{1,256}")


@dataclass(frozen=True, slots=True)
class WebhookSecret:
    """What a sender and a receiver share: 24 to 64 random bytes. Neither `str` nor `repr` shows it; `text` does."""

    key: bytes = field(repr=False)

    @classmethod
    def new(cls) -> WebhookSecret:
        """One that nobody can guess."""
        return cls(random.token_bytes(NEW_KEY_BYTES))

    @classmethod
    def parsed(cls, text: str) -> WebhookSecret:
        """The secret of which this is the `text`.

        Raises:
            InvalidInput: it is of none. The message does not show it.
        """
        key = decoded(text.removeprefix(PREFIX)) if text.startswith(PREFIX) else None
        if key is None or not KEY_BYTES_MIN <= len(key) <= KEY_BYTES_MAX:
            raise InvalidInput(
                "a secret of webhooks cannot be read",
                f"`{PREFIX}` and the base64 of {KEY_BYTES_MIN} to {KEY_BYTES_MAX} bytes are expected",
                "take it as it was shown when the endpoint was made, without blanks around it",
            )
        return cls(key)

    @property
    def text(self) -> str:
        """`whsec_…`, for the receiver: to be shown once."""
        return PREFIX + base64.b64encode(self.key).decode("ascii")

    def signature(self, message_id: str, timestamp: str, body: bytes) -> str:
        """As it stands in the header."""
        return f"{VERSION},{signature_of(self.key, message_id, timestamp, body)}"

    def judge(self, message_id: str, timestamp: str, body: bytes) -> Callable[[bytes], bool]:
        """What says of a signature, as it stands in the header, whether it is right for this message.

        Compared as texts, in constant time, so that there is one way only to write a signature.
        """
        return partial(hmac.compare_digest, self.signature(message_id, timestamp, body).encode("ascii"))


class Signer(Protocol):
    """What signs: a secret, or a key pair."""

    def signature(self, message_id: str, timestamp: str, body: bytes) -> str:
        """As it stands in the header."""
        ...


def signed_headers(
    message_id: str, timestamp_s: int, body: bytes, secrets: Sequence[Signer]
) -> dict[str, str]:
    """The three headers under which exactly these bytes are to be sent, with a signature under each of the secrets.

    Raises:
        InvalidInput: the id cannot be signed, or there is no secret.
    """
    if not ID.fullmatch(message_id):
        raise InvalidInput(
            f"the id of a webhook is {shown(message_id)}",
            "1 to 256 letters, digits and _ : = + / - are expected; a full stop would part what is signed",
            "give it another id",
        )
    check_count(secrets)
    timestamp = str(timestamp_s)
    signatures = (each.signature(message_id, timestamp, body) for each in secrets)
    return dict(zip(HEADERS, (message_id, timestamp, " ".join(signatures)), strict=True))


def check_count(secrets: Sequence[object]) -> None:
    """Raises InvalidInput if there is no secret, or far too many."""
    if not 1 <= len(secrets) <= SECRETS_MAX:
        raise InvalidInput(
            f"{len(secrets)} secrets of a webhook are given",
            f"1 to {SECRETS_MAX} are expected: a webhook without a signature tells nobody who sent it",
            "give the secret of the endpoint, and the one before it while it is replaced",
        )


def signature_of(key: bytes, message_id: str, timestamp: str, body: bytes) -> str:
    """In base64, as it stands behind `v1,`."""
    signed = hmac.new(key, f"{message_id}.{timestamp}.".encode("ascii"), hashlib.sha256)
    signed.update(body)
    return base64.b64encode(signed.digest()).decode("ascii")


def content_of(message_id: str, timestamp: str, body: bytes) -> bytes:
    """What is signed."""
    return f"{message_id}.{timestamp}.".encode("ascii") + body


def decoded(text: str) -> bytes | None:
    """With or without the padding, but nothing else that base64 does not have."""
    try:
        return base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return None
