"""The lanes of suspects in one queue, as the last look found them, and when the first of their jobs is due."""

from __future__ import annotations

from dataclasses import replace

from fencerow.core.model.lane import label_of
from fencerow.core.store.claims import Mark


class SuspectLanes:
    """`due_at`: when one is due, in this host's monotonic seconds; None: none is known, or all were claimed."""

    def __init__(self) -> None:
        self.due_at: float | None = None
        self._marks: list[Mark] = []

    def seen(self, mark: Mark, due_at: float) -> None:
        """The look has found this one. A claim starts at its beginning."""
        self._marks.append(replace(mark, run_at_us=0))
        self.due_at = due_at if self.due_at is None else min(self.due_at, due_at)

    def marks(self) -> list[Mark]:
        """Where a claim starts: those that are more urgent first, and in each priority those of labels."""
        return sorted(self._marks, key=lambda mark: (-mark.priority, label_of(mark.lane) is None, mark.lane))
