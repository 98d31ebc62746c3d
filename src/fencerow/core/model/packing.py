"""Payloads as they are stored: plain, sealed so that only holders of a key can read them, or signed so that an altered
one is noticed.

A sealed or signed payload is a JSON object of its own kind in the place of the plain one. It is bound to what it
belongs to: arguments to the job's id, its name and their version, a result to the job's id. So it cannot be moved.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import msgspec

from fencerow.core.errors import (
    DeclarationError,
    InvalidPayload,
    PayloadAltered,
    SealKeyUnknown,
    StoreUnavailable,
)

PACKED = b'{"fencerow:'
OUTSIDE = b'{"fencerow:outside"'
KEY_LENGTH_MAX = 64
UNPACKED_FIX = "use the app that has the key: its workers, its `client`, or `-A` on the command line"


@runtime_checkable
class PayloadSeal(Protocol):
    """Encrypts payloads. `Seal` is one; bring your own to keep the keys elsewhere.

    It is called on the event loop and inside transactions: it must not wait, so load or unwrap keys before. `bound` is
    what the payload belongs to; opened with another `bound`, it counts as altered. The same input should give the same
    output, else the rows of schedules are written anew whenever a worker starts.
    """

    @property
    def accepts_plain(self) -> bool:
        """Whether payloads are read that were stored without a seal."""
        ...

    def seal(self, plain: bytes, bound: bytes) -> tuple[str, bytes]:
        """The id of the key, at most 64 characters, and the sealed payload."""
        ...

    def open(self, key: str, sealed: bytes, bound: bytes) -> bytes:
        """The plain payload.

        Raises:
            SealKeyUnknown: the key is not at hand. The job waits for a worker that has it.
            PayloadAltered: this is not what was sealed, or not for this.
        """
        ...

    def mark(self, data: bytes) -> str:
        """What tells two payloads apart without showing them: a keyed hash that stays when other keys rotate."""
        ...


@runtime_checkable
class PayloadSign(Protocol):
    """Signs payloads, which stay readable. `Sign` is one."""

    @property
    def accepts_plain(self) -> bool:
        """Whether payloads are read that were stored without a signature."""
        ...

    def sign(self, data: bytes) -> tuple[str, str]:
        """The id of the key, at most 64 characters, and the signature as text."""
        ...

    def verify(self, key: str, data: bytes, signature: str) -> bool:
        """Whether the signature is that of the data under this key.

        Raises:
            SealKeyUnknown: the key is not at hand. The job waits for a worker that has it.
        """
        ...


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
        raise _altered("it is no whole sealed or signed payload")
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
        raise _altered("it is no whole reference to a payload outside")
    return found


def _read(stored: bytes) -> _Packed:
    try:
        return _packed.decode(stored)
    except (ValueError, RecursionError):
        return _Packed()


def told_of(value: Any) -> str | None:
    """What people are shown of a stored payload that was read as JSON, if it is sealed or lies outside the database;
    None: show it as it is."""
    if not isinstance(value, dict):
        return None
    sealed, outside = value.get("fencerow:sealed"), value.get("fencerow:outside")
    if isinstance(outside, dict) and {"name", "bytes"} <= outside.keys():
        under = f", under the key {outside['key']}" if outside.get("key") else ""
        return f"({outside['bytes']} bytes outside the database: {outside['name']}{under})"
    return f"(sealed under the key {sealed['key']})" if isinstance(sealed, dict) and "key" in sealed else None


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

    def found(self, of: str) -> Bound:
        """The same for arguments as they were stored: some came with a schedule.

        Raises:
            PayloadAltered: they were stored as something else.
        """
        if of == self.of:
            return self
        if of == "schedule" and self.of == "job":
            return Bound(of, "", self.name, self.version)
        raise _altered(f"it belongs to another payload ({of[:20]}, here {self.of})")

    def data(self, *more: str) -> bytes:
        """As bytes, in which no two are alike."""
        return msgspec.json.encode([1, self.of, self.job_id, self.name, self.version, *more])


class Packing:
    """How payloads are stored, and read back. This one leaves them as they are."""

    @property
    def inside(self) -> Packing:
        """The same for what must stay in its row."""
        return self

    @property
    def waits(self) -> bool:
        """Whether it may have to wait for a store: then async code goes through `apack` and `aunpack`, and nobody waits
        in an event loop."""
        return False

    def pack(self, plain: bytes, bound: Bound) -> bytes:  # noqa: ARG002
        """The bytes to store.

        Raises:
            InvalidPayload: they would look like a sealed payload.
        """
        if plain.startswith(PACKED):
            raise InvalidPayload(
                "the payload begins with a name that sealed payloads have",
                "an object whose first name begins with fencerow: could not be told from one",
                "name the field otherwise",
            )
        return plain

    async def apack(self, plain: bytes, bound: Bound) -> bytes:
        """`pack` for async code."""
        return self.pack(plain, bound)

    def drop(self, stored: bytes) -> None:
        """No row has what was packed here, and none will: it need not be kept. Waits for nothing."""

    def unpack(self, stored: bytes, bound: Bound) -> bytes:  # noqa: ARG002
        """The plain bytes.

        Raises:
            SealKeyUnknown: its key is not at hand. PayloadAltered: it is not what was stored.
        """
        packed = _packed_here(stored)
        if packed is not None:
            raise SealKeyUnknown(
                f"the payload is packed under the key {packed.key[:KEY_LENGTH_MAX]!r}",
                "this program has no key: nothing was declared with seal=",
                UNPACKED_FIX,
            )
        return stored

    async def aunpack(self, stored: bytes, bound: Bound) -> bytes:
        """`unpack` for async code."""
        return self.unpack(stored, bound)

    def fingerprint(self, name: str, args: bytes) -> str:
        """Identifies plain arguments under an idempotency key or a unique one."""
        return plain_fingerprint(name, args)

    def fingerprint_before(self, name: str, args: bytes) -> str | None:  # noqa: ARG002
        """The one that they had before payloads were sealed, if such payloads may still be there."""
        return None


PLAIN = Packing()


class SealedPacking(Packing):
    """Stores payloads sealed."""

    def __init__(self, seal: PayloadSeal) -> None:
        self._seal = seal

    def pack(self, plain: bytes, bound: Bound) -> bytes:
        mark = "" if bound.of == "result" else self._seal.mark(bound.data() + b"\n" + plain)
        key, sealed = self._seal.seal(plain, bound.data(mark))
        return _written("sealed", SealedPayload(key, bound.of, mark, base64.b64encode(sealed).decode()))

    def unpack(self, stored: bytes, bound: Bound) -> bytes:
        packed = _packed_here(stored)
        if packed is None and self._seal.accepts_plain:
            return stored
        if not isinstance(packed, SealedPayload):
            raise _unpacked("sealed")
        try:
            sealed = base64.b64decode(packed.text, validate=True)
        except (ValueError, binascii.Error):
            raise _altered("its text is no base64") from None
        return self._seal.open(packed.key, sealed, bound.found(packed.of).data(packed.mark))

    def fingerprint(self, name: str, args: bytes) -> str:
        return self._seal.mark(msgspec.json.encode([1, "key", name]) + b"\n" + args)

    def fingerprint_before(self, name: str, args: bytes) -> str | None:
        return plain_fingerprint(name, args) if self._seal.accepts_plain else None


class SignedPacking(Packing):
    """Stores payloads with a signature."""

    def __init__(self, sign: PayloadSign) -> None:
        self._sign = sign

    def pack(self, plain: bytes, bound: Bound) -> bytes:
        key, mark = self._sign.sign(bound.data() + b"\n" + plain)
        return _written("signed", SignedPayload(key, bound.of, mark, msgspec.Raw(plain)))

    def unpack(self, stored: bytes, bound: Bound) -> bytes:
        packed = _packed_here(stored)
        if packed is None and self._sign.accepts_plain:
            return stored
        if not isinstance(packed, SignedPayload):
            raise _unpacked("signed")
        plain = bytes(packed.payload)
        data = bound.found(packed.of).data() + b"\n" + plain
        if not self._sign.verify(packed.key, data, packed.mark):
            raise _altered("its signature is another payload's")
        return plain


def packing_of(given: PayloadSeal | PayloadSign | None) -> Packing:
    """How the payloads of an app are stored that was made with this.

    Raises:
        DeclarationError: it neither seals nor signs.
    """
    if given is None:
        return PLAIN
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


def _unpacked(how: str) -> PayloadAltered:
    return _altered(f"it is not {how}, and payloads without that are not accepted")


def _packed_here(stored: bytes) -> SealedPayload | SignedPayload | None:
    """The same as `packed_of` where no store is known.

    Raises:
        StoreUnavailable: the payload lies in one.
    """
    if outside_of(stored) is not None:
        raise StoreUnavailable(
            "the payload lies outside the database",
            "this program was not told where: outside_store is not set",
            "set outside_store (FENCEROW_OUTSIDE_STORE) as the program that stored it has it",
        )
    return packed_of(stored)


def _altered(why: str) -> PayloadAltered:
    return PayloadAltered(
        "a stored payload is not what was packed",
        why,
        "find out who wrote to the database; then submit the work anew",
    )
