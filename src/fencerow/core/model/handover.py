"""What a submit says of the handover of its job's end: to whom, in which line, and how long it waits there."""

from __future__ import annotations

from typing import Final

import msgspec

DEFAULT_RECEIVER: Final = "default"
HOLD_S: Final = 600.0


class HandoverTerms(msgspec.Struct, frozen=True):
    """The end of the job is handed to `receiver`, behind those of its `key` that were submitted before.

    It waits for these at most `hold_s` seconds, counted from its own end.
    """

    receiver: str
    key: str
    hold_s: float
