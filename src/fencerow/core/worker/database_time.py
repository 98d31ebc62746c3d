"""What a queue's view knows of the database's time, by this host's monotonic clock and without asking."""

from __future__ import annotations

# A job that was stored just now has an instant before that of its hint: those that are stored at once commit in any
# order, and a commit takes a while. Where a lane was seen empty a later mark would save nothing: it lies further back.
OVERTAKEN_US = 10_000
EMPTY_US = 100_000
STORED_US_MAX = 1_000_000  # what took longer to commit is found by the look after the hint


class DatabaseTime:
    """The database's clock minus this host's monotonic one: the most that it may be, and the least."""

    def __init__(self) -> None:
        self._most_us: int | None = None
        self._least_us = 0

    @property
    def is_known(self) -> bool:
        """Whether the clock was read at all."""
        return self._most_us is not None

    def read(self, now_us: int, asked: float, answered: float) -> None:
        """The clock was read between these two of our instants."""
        # As if it had been read when the question was sent. Too early a look finds nothing and looks again; had it been
        # read when the answer came, a hint of what is due might look like the future.
        self._most_us = now_us - int(asked * 1e6)
        self._least_us = now_us - int(answered * 1e6)

    def due_at(self, run_at_us: int) -> float:
        """When this instant comes, at the earliest; at once, where the clock is not known."""
        return 0.0 if self._most_us is None else (run_at_us - self._most_us) / 1e6

    def least_us(self, at: float) -> int:
        """What the clock says then, at least; 0, where it is not known."""
        return 0 if self._most_us is None else self._least_us + int(at * 1e6)

    def stored_us(self, at: float, empty_us: int | None) -> int:
        """Before which instant no job of a lane lies that was stored just now. `empty_us`: from where on the lane was
        seen empty; None: it was not."""
        if self._most_us is None:
            return 0
        now_us = self.least_us(at)
        if empty_us is None:
            return now_us - OVERTAKEN_US
        return max(min(empty_us - EMPTY_US, now_us - OVERTAKEN_US), now_us - STORED_US_MAX)
