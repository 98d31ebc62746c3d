"""How long to wait between two looks at what another does."""

from __future__ import annotations

from collections.abc import Iterator

FIRST_S, MOST_S = 0.05, 1.0


def pauses() -> Iterator[float]:
    """Longer and longer pauses, in seconds."""
    pause_s = FIRST_S
    while True:
        yield pause_s
        pause_s = min(pause_s * 1.5, MOST_S)
