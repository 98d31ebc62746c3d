"""What a submit says of the handover of its job's end: to whom, in which line, and how long it waits there."""

from __future__ import annotations

from typing import Any, Final

import msgspec

WING: Final = "handovers"  # under which a job has them
DEFAULT_RECEIVER: Final = "default"
HOLD_S: Final = 600.0


class HandoverTerms(msgspec.Struct, frozen=True):
    """The end of the job is handed to `receiver`, behind those of its `key` that were submitted before.

    It waits for these at most `hold_s` seconds, counted from its own end.
    """

    receiver: str
    key: str
    hold_s: float

    @property
    def term(self) -> dict[str, Any]:
        """As a job carries them."""
        return msgspec.structs.asdict(self)

    @property
    def terms(self) -> dict[str, Any]:
        """The terms of a job that has no others."""
        return {WING: self.term}
