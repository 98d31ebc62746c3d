"""Whether a request is from Discord, unaltered and of now: Ed25519 over its timestamp and its raw body."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from fencerow.core.errors import ConfigError, MissingExtra
from fencerow.core.model.instants import instant_us
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.web.errors import InteractionRefused

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

SIGNATURE = "x-signature-ed25519"
TIMESTAMP = "x-signature-timestamp"
TOLERANCE_S = 300.0
KEY_FORM = re.compile(r"[0-9a-fA-F]{64}")
SIGNATURE_FORM = re.compile(r"[0-9a-fA-F]{128}")
TIMESTAMP_FORM = re.compile(r"0|[1-9][0-9]{0,11}")


@dataclass(frozen=True, slots=True)
class DiscordKey:
    """The public key of an application at Discord. It is no secret."""

    loaded: Ed25519PublicKey = field(repr=False)

    @classmethod
    def parsed(cls, text: str) -> DiscordKey:
        """The key of which this is the text in hexadecimal digits, as Discord's pages show it.

        Raises:
            ConfigError: it is of none. MissingExtra: `cryptography` is not installed.
        """
        try:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        except ImportError:
            raise MissingExtra(
                "interactions of Discord cannot be verified",
                "the library cryptography is not installed",
                'pip install "fencerow[discord]"',
            ) from None
        if not KEY_FORM.fullmatch(text):
            raise ConfigError(
                "the public key of the application cannot be read",
                "64 hexadecimal digits are expected",
                "copy it from the application's page at Discord",
            )
        return cls(Ed25519PublicKey.from_public_bytes(bytes.fromhex(text)))

    def signed(self, signature: bytes, message: bytes) -> bool:
        """Whether this is the key's signature of the message."""
        from cryptography.exceptions import InvalidSignature

        try:
            self.loaded.verify(signature, message)
        except InvalidSignature:
            return False
        return True


def verify_interaction(
    signature: Sequence[str],
    timestamp: Sequence[str],
    body: bytes,
    key: DiscordKey,
    *,
    tolerance_s: Seconds = TOLERANCE_S,
    now: datetime | None = None,
) -> None:
    """Return if an interaction is from Discord, unaltered and of now. Call it before the body is parsed.

    `signature` and `timestamp` are the values of the two headers, each of which must come once. `body`: its bytes as
    they came. `now`: by default the time of this machine.

    Raises:
        InteractionRefused: it is not, whatever is wrong with it. Answer 401: Discord tries it with wrong signatures.
    """
    signed, at = _one(signature, SIGNATURE_FORM), _one(timestamp, TIMESTAMP_FORM)
    now_s = time.time() if now is None else instant_us(now, "now") / 1_000_000
    if not key.signed(bytes.fromhex(signed), at.encode("ascii") + body):
        raise _refused("its signature is not that of this body and timestamp")
    if abs(int(at) - now_s) > in_seconds(tolerance_s):
        raise _refused(f"its timestamp is more than {in_seconds(tolerance_s):g} s from this machine's clock")


def _one(values: Sequence[str], form: re.Pattern[str]) -> str:
    if len(values) != 1 or not form.fullmatch(values[0]):
        raise _refused("its signature or its timestamp is missing or malformed")
    return values[0]


def _refused(why: str) -> InteractionRefused:
    return InteractionRefused(
        "the request is not from Discord, or was altered",
        why,
        "compare the public key and the clock, and pass the raw body",
    )
