"""Payloads sealed so that only holders of a key can read them, or signed so that an altered one is noticed."""

from __future__ import annotations

import base64
import binascii

import msgspec

from fencerow.core.errors import DeclarationError, PayloadAltered
from fencerow.core.model.packed import Bound, SealedPayload, SignedPayload, altered, plain_fingerprint
from fencerow.core.model.packing import Packing, packed_here
from fencerow.payloads.seals import PayloadSeal, PayloadSign


class SealedPacking(Packing):
    """Stores payloads sealed."""

    def __init__(self, seal: PayloadSeal) -> None:
        self._seal = seal

    def pack(self, plain: bytes, bound: Bound) -> bytes:
        mark = "" if bound.of == "result" else self._seal.mark(_data(bound) + b"\n" + plain)
        key, sealed = self._seal.seal(plain, _data(bound, mark))
        return _written("sealed", SealedPayload(key, bound.of, mark, base64.b64encode(sealed).decode()))

    def unpack(self, stored: bytes, bound: Bound) -> bytes:
        packed = packed_here(stored)
        if packed is None and self._seal.accepts_plain:
            return stored
        if not isinstance(packed, SealedPayload):
            raise _unpacked("sealed")
        try:
            sealed = base64.b64decode(packed.text, validate=True)
        except (ValueError, binascii.Error):
            raise altered("its text is no base64") from None
        return self._seal.open(packed.key, sealed, _data(_stored_as(packed.of, bound), packed.mark))

    def fingerprint(self, name: str, args: bytes) -> str:
        return self._seal.mark(msgspec.json.encode([1, "key", name]) + b"\n" + args)

    def fingerprint_before(self, name: str, args: bytes) -> str | None:
        return plain_fingerprint(name, args) if self._seal.accepts_plain else None


class SignedPacking(Packing):
    """Stores payloads with a signature."""

    def __init__(self, sign: PayloadSign) -> None:
        self._sign = sign

    def pack(self, plain: bytes, bound: Bound) -> bytes:
        key, mark = self._sign.sign(_data(bound) + b"\n" + plain)
        return _written("signed", SignedPayload(key, bound.of, mark, msgspec.Raw(plain)))

    def unpack(self, stored: bytes, bound: Bound) -> bytes:
        packed = packed_here(stored)
        if packed is None and self._sign.accepts_plain:
            return stored
        if not isinstance(packed, SignedPayload):
            raise _unpacked("signed")
        plain = bytes(packed.payload)
        data = _data(_stored_as(packed.of, bound)) + b"\n" + plain
        if not self._sign.verify(packed.key, data, packed.mark):
            raise altered("its signature is another payload's")
        return plain


def packing_of(given: PayloadSeal | PayloadSign) -> Packing:
    """How the payloads of an app are stored that was made with this.

    Raises:
        DeclarationError: it neither seals nor signs.
    """
    if isinstance(given, PayloadSeal):
        return SealedPacking(given)
    if isinstance(given, PayloadSign):
        return SignedPacking(given)
    raise DeclarationError(
        f"seal= is of type {type(given).__name__}",
        "what seals payloads or signs them is expected, with all methods of PayloadSeal or PayloadSign",
        "pass fencerow.payloads.Seal(...) or Sign(...)",
    )


def _written(how: str, packed: SealedPayload | SignedPayload) -> bytes:
    return msgspec.json.encode({f"fencerow:{how}": packed})


def _data(bound: Bound, *more: str) -> bytes:
    """What a payload belongs to as bytes, in which no two are alike."""
    return msgspec.json.encode([1, bound.of, bound.job_id, bound.name, bound.version, *more])


def _stored_as(of: str, bound: Bound) -> Bound:
    """The same for arguments as they were stored: some came with a schedule."""
    if of == bound.of:
        return bound
    if of == "schedule" and bound.of == "job":
        return Bound(of, "", bound.name, bound.version)
    raise altered(f"it belongs to another payload ({of[:20]}, here {bound.of})")


def _unpacked(how: str) -> PayloadAltered:
    return altered(f"it is not {how}, and payloads without that are not accepted")
