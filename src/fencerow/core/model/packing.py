"""Payloads as they are stored: plain here; who seals or signs them brings a `Packing` of his own (`payloads/`).

A sealed or signed payload is a JSON object of its own kind in the place of the plain one. It is bound to what it
belongs to: arguments to the job's id, its name and their version, a result to the job's id. So it cannot be moved.
"""

from __future__ import annotations

from fencerow.core.errors import InvalidPayload, SealKeyUnknown, StoreUnavailable
from fencerow.core.model.packed import (
    PACKED,
    Bound,
    SealedPayload,
    SignedPayload,
    outside_of,
    packed_of,
    plain_fingerprint,
)

KEY_LENGTH_MAX = 64
UNPACKED_FIX = "use the app that has the key: its workers, its `client`, or `-A` on the command line"


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
        packed = packed_here(stored)
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
        """Identifies plain arguments under a key."""
        return plain_fingerprint(name, args)

    def fingerprint_before(self, name: str, args: bytes) -> str | None:  # noqa: ARG002
        """The one that they had before payloads were sealed, if such payloads may still be there."""
        return None


PLAIN = Packing()


def packed_here(stored: bytes) -> SealedPayload | SignedPayload | None:
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
