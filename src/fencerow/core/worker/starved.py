"""How long a thread waited for a processor, as Linux counts it: a loop that does not get one is blocked by no code."""

from __future__ import annotations

from pathlib import Path

SHARE = 0.5  # of the time in which the loop did not answer


def waited_s(thread_id: int) -> float | None:
    """The seconds that this thread of the process could run and did not, since it began; None: nobody counts them."""
    try:
        counts = Path(f"/proc/self/task/{thread_id}/schedstat").read_text("ascii").split()
        return int(counts[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return None


def is_starved(before_s: float | None, after_s: float | None, silent_s: float) -> bool:
    """Whether a thread that was silent for so long waited for a processor for most of it."""
    return before_s is not None and after_s is not None and after_s - before_s >= SHARE * silent_s
