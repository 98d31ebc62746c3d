"""`HoldPartition`: a handler says that nothing can be handled just now, and the partition stays where it is."""

from __future__ import annotations

from fencerow.core.model.control import check_delay
from fencerow.core.model.seconds import Seconds


class HoldPartition(Exception):
    """Raised by a consumer's handler whose own need is away, such as a broker: the event and all behind it wait.

    Nothing is put aside or parked and no delivery is counted. The same event comes again after `after_s`, at most a
    year, or sooner where another process takes the partition over. Use it where the next event would fail alike; an
    error of one event is no case of it.
    """

    def __init__(self, after_s: Seconds = 1.0, reason: str = "") -> None:
        super().__init__(reason or "the handler asked to hold its partition")
        self.after_s = check_delay(after_s, "HoldPartition(after_s)", zero=False)
