"""What seals payloads, or signs them: ours (`Seal`, `Sign`), or your own."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class PayloadSeal(Protocol):
    """Encrypts payloads. `Seal` is one; bring your own to keep the keys elsewhere.

    It is called on the event loop and inside transactions: it must not wait, so load or unwrap keys before. `bound` is
    what the payload belongs to; opened with another `bound`, it counts as altered. The same input should give the same
    output, else the rows of schedules are written again whenever a worker starts.
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
