"""What a store of large payloads must do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

import msgspec

from fencerow.core.errors import PayloadMissing
from fencerow.core.model.seconds import Seconds


class StoredObject(msgspec.Struct, frozen=True):
    """One object of a store: its name, and how long ago it was written, by the store's own clock."""

    name: str
    age_s: float


class PayloadStore(Protocol):
    """Keeps large payloads by name. It is called on threads, by several at once, and may wait. Nobody waits for it for
    longer than `outside_timeout_s`; its thread is left behind then, and 16 of them are the most.

    Names are made of letters, digits and . _ - /, at most 120 characters. Every method raises `StoreUnavailable` where
    trying again may help.
    """

    def put(self, name: str, data: bytes) -> None:
        """Keep the data, whole or not at all: once this has returned, a crash loses nothing of it."""
        ...

    def get(self, name: str, bytes_max: int) -> bytes:
        """The data that was kept; of what is larger than `bytes_max`, any part that is larger, and not much more.

        Somebody else may have put another object there, of any size, and all of it may be more than the memory.

        Raises:
            PayloadMissing: there is no such object.
        """
        ...

    def delete(self, name: str) -> None:
        """Remove the object; nothing if it is not there."""
        ...

    def list(self, prefix: str) -> Iterable[StoredObject]:
        """The objects whose names begin so, in any order, of which there may be millions: give each as it is found.

        The prefix is empty, or ends with `/`. Objects may be removed meanwhile.
        """
        ...


@runtime_checkable
class AddressingStore(Protocol):
    """What a store can do beside, from which others may read an object by an address that expires."""

    def address(self, name: str, expires_s: Seconds) -> str:
        """A URL at which whoever has it reads this one object, for so many seconds. Nothing is looked at."""
        ...


def missing(name: str, where: str) -> PayloadMissing:
    """The error of an object that is not there."""
    return PayloadMissing(
        f"the payload {name} is missing",
        f"the job's row refers to it, and {where} has it no longer",
        "restore it from a backup and revive the job, or submit the work again",
    )
