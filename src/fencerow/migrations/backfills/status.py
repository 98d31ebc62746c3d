"""How far a backfill is, from its lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fencerow.migrations.backfills.operations import Lane, LaneState

# Of several lanes: what somebody must do something about comes first.
ORDER: tuple[LaneState, ...] = ("failed", "running", "paused", "done")


@dataclass(frozen=True, slots=True)
class FailedRange:
    """A range whose handler raised; both keys are included, as text. `lane` stopped there if it `gave_up`."""

    lane: int
    first: str | None
    last: str | None
    error: str
    failures: int
    gave_up: bool


@dataclass(frozen=True, slots=True)
class BackfillStatus:
    """How far it is. `rows_planned` was counted, or on a large table estimated, at the start."""

    name: str
    state: LaneState
    lanes: tuple[Lane, ...]
    rows_done: int
    ranges_done: int
    rows_planned: int
    percent: float
    rows_per_s: float | None  # of this run so far
    eta_s: float | None  # at that rate; None while it does not move
    failed: tuple[FailedRange, ...]

    @staticmethod
    def of(lanes: Sequence[Lane]) -> BackfillStatus:
        """From all lanes of one backfill."""
        state: LaneState = next(state for state in ORDER if any(lane.state == state for lane in lanes))
        done = sum(lane.rows_done for lane in lanes)
        planned = lanes[0].rows_planned
        percent = 100.0 if state == "done" else min(99.9, 100.0 * done / max(1, planned))
        rate = _rate(lanes)
        left = max(0, planned - done)
        return BackfillStatus(
            lanes[0].name,
            state,
            tuple(lanes),
            done,
            sum(lane.ranges_done for lane in lanes),
            planned,
            round(percent, 1),
            None if rate is None else round(rate, 1),
            left / rate if rate and state == "running" else None,
            tuple(
                FailedRange(
                    lane.lane,
                    lane.failed_first,
                    lane.failed_last,
                    lane.error,
                    lane.failures,
                    lane.state == "failed",
                )
                for lane in lanes
                if lane.error is not None
            ),
        )

    def as_json(self) -> dict[str, Any]:
        """Plain data for a program."""
        return {
            "name": self.name,
            "state": self.state,
            "rows_done": self.rows_done,
            "ranges_done": self.ranges_done,
            "rows_planned": self.rows_planned,
            "percent": self.percent,
            "rows_per_s": self.rows_per_s,
            "eta_s": None if self.eta_s is None else round(self.eta_s, 1),
            "failed": [
                {"lane": each.lane, "first": each.first, "last": each.last, "error": each.error}
                for each in self.failed
            ],
        }


def _rate(lanes: Sequence[Lane]) -> float | None:
    run_us = max(lane.moved_at_us for lane in lanes) - min(lane.run_at_us for lane in lanes)
    rows = sum(lane.rows_done - lane.run_rows for lane in lanes)
    return rows * 1_000_000 / run_us if run_us > 0 and rows > 0 else None
