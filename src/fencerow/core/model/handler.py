"""What a worker knows of a job: how to decode its arguments, call it, and judge its failures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fencerow.core.model.codec import ArgumentsCodec
from fencerow.core.model.packed import PACKED, Bound
from fencerow.core.model.packing import PLAIN, Packing
from fencerow.core.model.retry import RetryRule
from fencerow.core.model.value import ValueCodec

VALUE = "value"


@dataclass(frozen=True)
class Handler:
    """One registered job. `job_parameter` is the name under which the handler takes its `Job`, if it wants one.

    With `batch_max` the handler takes up to so many jobs of this name in one call, as `BatchItem`s whose value
    is the argument `VALUE`; a call that is not full waits `batch_wait_s` for more. `process` says whether it runs in
    a child process (true), never does (false), or only as a suspect (None); `memory_bytes_max` bounds the child's
    address space. `packing`: how arguments and results are stored.
    """

    name: str
    function: Callable[..., Any]
    is_async: bool
    job_parameter: str | None
    arguments: ArgumentsCodec
    result: ValueCodec
    rule: RetryRule
    timeout_s: float | None
    batch_max: int | None = None
    batch_wait_s: float = 0.0
    process: bool | None = None
    memory_bytes_max: int | None = None
    packing: Packing = PLAIN

    def packed_arguments(self, job_id: str, args: bytes, *, inside: bool = False) -> bytes:
        """Encoded arguments as they are stored with that job; without an id, with a schedule. `inside`: in its row,
        however large they are.

        Raises:
            StoreUnavailable: they are large, and their store does not answer. Nothing is stored.
        """
        if self.packing is PLAIN:  # no parameter has a name that a packed payload begins with
            return args
        packing = self.packing.inside if inside else self.packing
        return packing.pack(args, self._bound(job_id))

    async def apacked_arguments(self, job_id: str, args: bytes, *, inside: bool = False) -> bytes:
        """`packed_arguments` for async code."""
        packing = self.packing.inside if inside else self.packing
        return await packing.apack(args, self._bound(job_id))

    def plain_arguments(self, job_id: str, stored: bytes, version: int) -> bytes:
        """Stored arguments of that job as they were encoded, in this version.

        Raises:
            SealKeyUnknown, PayloadAltered: they cannot be opened here, or are not what was stored.
            StoreUnavailable, PayloadMissing: they are not to be had from their store.
        """
        if self.packing is PLAIN and not stored.startswith(PACKED):
            return stored
        return self.packing.unpack(stored, Bound.arguments(job_id, self.name, version))

    def called_with(self, job_id: str, stored: bytes, version: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The positional and named arguments to call it with for that job.

        Raises:
            SealKeyUnknown, PayloadAltered, StoreUnavailable, PayloadMissing: see `plain_arguments`.
            ArgumentsTooNew, MalformedPayload: they do not fit this code.
        """
        return self.arguments.decode(self.plain_arguments(job_id, stored, version), version)

    async def acalled_with(
        self, job_id: str, stored: bytes, version: int
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """`called_with` for async code."""
        plain = await self.packing.aunpack(stored, Bound.arguments(job_id, self.name, version))
        return self.arguments.decode(plain, version)

    def stored_result(self, job_id: str, value: Any, *, inside: bool = False) -> bytes:
        """What it returned for that job, as it is stored; `inside`: in its row, however large it is.

        Raises:
            InvalidPayload, PayloadTooLarge: it cannot be kept.
        """
        return self.packed_result(job_id, self.result.encode(value), inside=inside)

    def packed_result(self, job_id: str, encoded: bytes, *, inside: bool = False) -> bytes:
        """The same for a result that is encoded already."""
        if self.packing is PLAIN and not encoded.startswith(PACKED):
            return encoded
        return (self.packing.inside if inside else self.packing).pack(encoded, Bound.result(job_id))

    async def apacked_result(self, job_id: str, encoded: bytes, *, inside: bool = False) -> bytes:
        """`packed_result` for async code."""
        return await (self.packing.inside if inside else self.packing).apack(encoded, Bound.result(job_id))

    def _bound(self, job_id: str) -> Bound:
        return Bound.arguments(job_id, self.name, self.arguments.version)
