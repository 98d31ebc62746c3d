"""Payloads of which the large ones lie outside the database: the row has a reference with their size and digest."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import time
from functools import partial

import msgspec

from fencerow.core.errors import ConfigError, DatabaseError, PayloadAltered, StoreUnavailable
from fencerow.core.model.packed import Bound, OutsidePayload, fingerprint, outside_of, packed_of
from fencerow.core.model.packing import Packing
from fencerow.db.threads import NoThread
from fencerow.payloads.outside.names import What, is_name_of
from fencerow.payloads.outside.owner import OwnStore
from fencerow.payloads.outside.store import AddressingStore

log = logging.getLogger("fencerow.payloads")

BYTES_MAX = 2**31  # more than any setting allows
AGAIN_S = 0.5  # between two reads of an object that is not as it was written
# Not every error of ours: a handler that must end meanwhile is told so by one.
KEPT_FROM = (StoreUnavailable, ConfigError, DatabaseError, NoThread)


class OutsidePacking(Packing):
    """Keeps packed payloads of `bytes_min` and more in the store, each under a name that nobody had before.

    The object is written before the row that refers to it, and removed only after that row is gone. A result for which
    the store is away goes into the row, so that no work is done again for it.
    """

    def __init__(self, inside: Packing, store: OwnStore, bytes_min: int) -> None:
        self._inside = inside
        self._store = store
        self._bytes_min = bytes_min

    @property
    def inside(self) -> Packing:
        return self._inside

    @property
    def waits(self) -> bool:
        return True

    def pack(self, plain: bytes, bound: Bound) -> bytes:
        packed = self._inside.pack(plain, bound)
        if self._stays(packed, bound):
            return packed
        try:
            return self._store.calls.run(partial(self._put, packed, bound))
        except KEPT_FROM as error:
            return _in_its_row(packed, bound, error)

    async def apack(self, plain: bytes, bound: Bound) -> bytes:
        packed = self._inside.pack(plain, bound)
        if self._stays(packed, bound):
            return packed
        try:
            return await self._store.calls.arun(partial(self._put, packed, bound))
        except KEPT_FROM as error:
            return _in_its_row(packed, bound, error)

    def drop(self, stored: bytes) -> None:
        reference = outside_of(stored)
        if reference is not None:
            with contextlib.suppress(StoreUnavailable, NoThread):  # the sweep finds it
                self._store.calls.start(partial(self._store.store.delete, reference.name))

    def unpack(self, stored: bytes, bound: Bound) -> bytes:
        reference = _reference(stored, bound)
        if reference is not None:
            stored = self._store.calls.run(partial(self._get, reference))
        return self._inside.unpack(stored, bound)

    async def aunpack(self, stored: bytes, bound: Bound) -> bytes:
        reference = _reference(stored, bound)
        if reference is not None:
            stored = await self._store.calls.arun(partial(self._get, reference))
        return self._inside.unpack(stored, bound)

    async def aaddress(self, stored: bytes, bound: Bound, expires_s: int) -> str | None:
        """Where the store itself gives this payload to whoever has the address, for so long. None: it lies in its row,
        is sealed or signed there, or the store gives no addresses.

        Raises:
            StoreUnavailable: the store does not answer. PayloadAltered: it can be no reference of this job's.
        """
        reference, store = _reference(stored, bound), self._store.store
        if reference is None or reference.key is not None or not isinstance(store, AddressingStore):
            return None
        return await self._store.calls.arun(partial(store.address, reference.name, expires_s))

    def fingerprint(self, name: str, args: bytes) -> str:
        return self._inside.fingerprint(name, args)

    def fingerprint_before(self, name: str, args: bytes) -> str | None:
        return self._inside.fingerprint_before(name, args)

    def _stays(self, packed: bytes, bound: Bound) -> bool:
        return len(packed) < self._bytes_min or not bound.job_id

    def _put(self, packed: bytes, bound: Bound) -> bytes:
        what = _what(bound)
        name = self._store.put(bound.job_id, what, packed)
        mark = "" if what == "result" else fingerprint(bound.name, packed)
        under = packed_of(packed)
        key = None if under is None else under.key
        reference = OutsidePayload(name, len(packed), hashlib.sha256(packed).hexdigest(), mark, key)
        return msgspec.json.encode({"fencerow:outside": reference})

    def _get(self, reference: OutsidePayload) -> bytes:
        """The object. One that is wrong is read twice: a proxy answers with pages of its own, for a moment."""
        found = self._store.store.get(reference.name, reference.bytes)
        if _is_as_written(found, reference):
            return found
        time.sleep(AGAIN_S)
        again = self._store.store.get(reference.name, reference.bytes)
        if _is_as_written(again, reference):
            return again
        if again != found:
            raise StoreUnavailable(
                "the store of large payloads gives something else at each read",
                f"it was asked for {reference.name} twice, and neither was what was written",
                "look at what stands between this program and the store",
            )
        raise _altered(f"the object {reference.name} is not the one that was written")


def _in_its_row(packed: bytes, bound: Bound, error: Exception) -> bytes:
    """A result all the same.

    Raises:
        Exception: the error, for arguments: nothing is stored.
    """
    if _what(bound) != "result":
        raise error
    log.warning("the result of job %s goes into its row: %s", bound.job_id, error)
    return packed


def _reference(stored: bytes, bound: Bound) -> OutsidePayload | None:
    """Where the payload lies; None: here.

    Raises:
        PayloadAltered: it can be no reference of this job's.
    """
    reference = outside_of(stored)
    if reference is None:
        return None
    if not is_name_of(reference.name, bound.job_id, _what(bound)):
        raise _altered("the row refers to the payload of another job")
    if not 0 <= reference.bytes <= BYTES_MAX:
        raise _altered("the row gives its payload a size that none has")
    return reference


def _is_as_written(found: bytes, reference: OutsidePayload) -> bool:
    return hashlib.sha256(found).hexdigest() == reference.sha256


def _what(bound: Bound) -> What:
    return "result" if bound.of == "result" else "arguments"


def _altered(why: str) -> PayloadAltered:
    return PayloadAltered(
        "a payload outside the database is not what was stored",
        why,
        "find out who wrote to the store or the database; then submit the work again",
    )
