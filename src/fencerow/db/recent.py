"""What was seen last, for as long as it is worth telling."""

from __future__ import annotations

import time
from typing import Final, Generic, TypeVar

T = TypeVar("T")

TOLD_S: Final = 600.0


class Recent(Generic[T]):
    """Noted by one thread at a time, read from any."""

    def __init__(self) -> None:
        self.last: tuple[T, float] | None = None  # and when it was seen, in monotonic seconds

    def note(self, seen: T) -> None:
        """It is seen now."""
        self.last = seen, time.monotonic()

    def told(self) -> T | None:
        """The last one, if it was seen within the last minutes."""
        last = self.last
        return last[0] if last is not None and time.monotonic() - last[1] < TOLD_S else None
