"""The form of payloads that are stored otherwise than plain: sealed, signed, or outside the database.

Each is a JSON object of its own kind in the place of the plain payload, and says what it belongs to.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import msgspec

from fencerow.core.errors import PayloadAltered

PACKED = b'{"fencerow:'
OUTSIDE = b'{"fencerow:outside"'


class SealedPayload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sealed payload as it is stored. `mark` tells arguments apart; a result has none. `of`: what it is bound to."""

    key: str
    of: str
    mark: str
    text: str


class SignedPayload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A signed payload as it is stored, with the payload itself, byte for byte."""

    key: str
    of: str
    mark: str
    payload: msgspec.Raw


class OutsidePayload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the row has of a payload that lies outside the database. `mark` identifies arguments; a result has none.
    `key`: under which it is sealed or signed there."""

    name: str
    bytes: int
    sha256: str
    mark: str
    key: str | None = None


class _Packed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sealed: SealedPayload | None = msgspec.field(default=None, name="fencerow:sealed")
    signed: SignedPayload | None = msgspec.field(default=None, name="fencerow:signed")
    outside: OutsidePayload | None = msgspec.field(default=None, name="fencerow:outside")


_packed = msgspec.json.Decoder(_Packed)


def packed_of(stored: bytes) -> SealedPayload | SignedPayload | None:
    """What is sealed or signed here; None: it is plain.

    Raises:
        PayloadAltered: it begins as such a payload does, and is none.
    """
    if not stored.startswith(PACKED):
        return None
    found = _read(stored)
    both = found.sealed or found.signed
    if both is None:
        raise altered("it is no whole sealed or signed payload")
    return both


def outside_of(stored: bytes) -> OutsidePayload | None:
    """Where the payload lies that this stands for; None: it lies here.

    Raises:
        PayloadAltered: it begins as such a reference does, and is none.
    """
    if not stored.startswith(OUTSIDE):
        return None
    found = _read(stored).outside
    if found is None:
        raise altered("it is no whole reference to a payload outside")
    return found


def _read(stored: bytes) -> _Packed:
    try:
        return _packed.decode(stored)
    except (ValueError, RecursionError):
        return _Packed()


def fingerprint(name: str, args: bytes) -> str:
    """Identifies stored arguments of a job: equal fingerprints are the same work, also under another key."""
    packed = _read(args) if args.startswith(PACKED) else _Packed()
    if packed.outside is not None:
        return packed.outside.mark
    if packed.sealed is not None:
        return packed.sealed.mark
    return plain_fingerprint(name, bytes(packed.signed.payload) if packed.signed is not None else args)


def plain_fingerprint(name: str, args: bytes) -> str:
    """Identifies plain arguments."""
    return hashlib.sha256(name.encode() + b"\0" + args).hexdigest()


@dataclass(frozen=True, slots=True)
class Bound:
    """What a payload belongs to. Those of a schedule are for all of its jobs, so they are bound to their name alone."""

    of: str
    job_id: str
    name: str = ""
    version: int = 1

    @staticmethod
    def arguments(job_id: str, name: str, version: int) -> Bound:
        """Those of a job; without an id, those that a schedule keeps."""
        return Bound("job" if job_id else "schedule", job_id, name, version)

    @staticmethod
    def result(job_id: str) -> Bound:
        """The result of a job."""
        return Bound("result", job_id)


def altered(why: str) -> PayloadAltered:
    return PayloadAltered(
        "a stored payload is not what was packed",
        why,
        "find out who wrote to the database; then submit the work again",
    )
