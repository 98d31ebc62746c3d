"""Signatures of webhooks that a receiver can check and cannot make: Ed25519, `v1a` of Standard Webhooks.

    whsk_…   base64 of the private key and the public one, 32 bytes each: signs, and never leaves the database
    whpk_…   base64 of the public key: what a receiver is told, and may be shown to anybody

They need the library `cryptography`, of the extra `seal`.
"""

from __future__ import annotations

import base64
import secrets as random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from fencerow.core.errors import InvalidInput, MissingExtra
from fencerow.web.webhooks.signing import WebhookSecret, content_of, decoded

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
PRIVATE: Final = "whsk_"
PUBLIC: Final = "whpk_"
VERSION: Final = "v1a"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """What a receiver is told of an endpoint with a key pair. It is no secret."""

    key: bytes

    @classmethod
    def parsed(cls, text: str) -> PublicKey:
        """The key of which this is the `text`.

        Raises:
            InvalidInput: it is of none.
        """
        key = decoded(text.removeprefix(PUBLIC)) if text.startswith(PUBLIC) else None
        if key is None or len(key) != KEY_BYTES:
            raise _unreadable("public key", PUBLIC, KEY_BYTES)
        return cls(key)

    @property
    def text(self) -> str:
        """`whpk_…`, for the receiver."""
        return PUBLIC + base64.b64encode(self.key).decode("ascii")

    def judge(self, message_id: str, timestamp: str, body: bytes) -> Callable[[bytes], bool]:
        """What says of a signature, as it stands in the header, whether it is right for this message.

        Raises:
            MissingExtra: `cryptography` is not installed. InvalidInput: no such key can exist.
        """
        key, content = _loaded(self.key), content_of(message_id, timestamp, body)
        return lambda given: _is_right(key, content, given)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """What an endpoint with asymmetric signatures is signed by. Neither `str` nor `repr` shows it; `text` does."""

    private: bytes = field(repr=False)

    @classmethod
    def new(cls) -> KeyPair:
        """One that nobody can guess.

        Raises:
            MissingExtra: `cryptography` is not installed.
        """
        made = cls(random.token_bytes(KEY_BYTES))
        _private(made.private)
        return made

    @classmethod
    def parsed(cls, text: str) -> KeyPair:
        """The key pair of which this is the `text`.

        Raises:
            InvalidInput: it is of none, or its halves do not belong together. The message does not show it.
            MissingExtra: `cryptography` is not installed.
        """
        both = decoded(text.removeprefix(PRIVATE)) if text.startswith(PRIVATE) else None
        if both is None or len(both) != 2 * KEY_BYTES:
            raise _unreadable("key pair", PRIVATE, 2 * KEY_BYTES)
        found = cls(both[:KEY_BYTES])
        if found.public.key != both[KEY_BYTES:]:
            raise InvalidInput(
                "the halves of a key pair of webhooks do not belong together",
                "its public key is not that of its private key",
                "take it as it was made",
            )
        return found

    @property
    def public(self) -> PublicKey:
        """The half for receivers."""
        return PublicKey(_private(self.private).public_key().public_bytes_raw())

    @property
    def text(self) -> str:
        """`whsk_…`, as it is stored."""
        return PRIVATE + base64.b64encode(self.private + self.public.key).decode("ascii")

    def signature(self, message_id: str, timestamp: str, body: bytes) -> str:
        """As it stands in the header."""
        signed = _private(self.private).sign(content_of(message_id, timestamp, body))
        return f"{VERSION},{base64.b64encode(signed).decode('ascii')}"


def signer_of(text: str) -> WebhookSecret | KeyPair:
    """What signs, of its text.

    Raises:
        InvalidInput: it is of neither. MissingExtra: it is a key pair, and `cryptography` is not installed.
    """
    return KeyPair.parsed(text) if text.startswith(PRIVATE) else WebhookSecret.parsed(text)


def for_receiver(text: str) -> str:
    """What a receiver is told of what signs: the secret itself, or the public key of a pair.

    Raises:
        InvalidInput, MissingExtra: as `signer_of`.
    """
    return KeyPair.parsed(text).public.text if text.startswith(PRIVATE) else text


def _is_right(key: Ed25519PublicKey, content: bytes, given: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    version, _, text = given.partition(b",")
    if version != VERSION.encode():
        return False
    signature = decoded(text.decode("latin-1"))
    # One way only to write it, as with `v1`.
    if signature is None or len(signature) != SIGNATURE_BYTES or base64.b64encode(signature) != text:
        return False
    try:
        key.verify(signature, content)
    except InvalidSignature:
        return False
    return True


def _private(key: bytes) -> Ed25519PrivateKey:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError:
        raise _missing() from None
    return Ed25519PrivateKey.from_private_bytes(key)


def _loaded(key: bytes) -> Ed25519PublicKey:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise _missing() from None
    try:
        return Ed25519PublicKey.from_public_bytes(key)
    except ValueError:
        raise _unreadable("public key", PUBLIC, KEY_BYTES) from None


def _missing() -> MissingExtra:
    return MissingExtra(
        "asymmetric signatures of webhooks cannot be used",
        "the library cryptography is not installed",
        'pip install "fencerow[seal]"; or use a shared secret, which needs nothing',
    )


def _unreadable(what: str, prefix: str, length: int) -> InvalidInput:
    return InvalidInput(
        f"a {what} of webhooks cannot be read",
        f"`{prefix}` and the base64 of {length} bytes are expected",
        "take it as it was shown, without blanks around it",
    )
