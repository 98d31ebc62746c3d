"""The lanes in which jobs are queued, and in which order a claim is given them.

A lane is a priority of a queue and one of the names below. The schema computes the name from the job, by the
function `lane` on PostgreSQL and in a column on SQLite: this page and the schema say the same. A claim names the lanes
from which it may take, so whoever may not take a job does not meet it. Where the time counts that jobs have been due,
another lane may go first than the one of the highest priority: `Ageing`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

ANYBODYS: Final = ""  # jobs that name no share, and no label or one whose wait is over
LABEL: Final = "label:"  # and the label
SHARE: Final = "share:"  # and the share; by itself it stands for those of all shares
SUSPECT: Final = "suspect:"  # and nothing, or the lane of the label


def lane_of(share: str | None, label: str | None) -> str:
    """Where a new job is queued; of a share, where all shares are."""
    if label is not None:
        return LABEL + label
    return ANYBODYS if share is None else SHARE


def label_of(lane: str) -> str | None:
    """The label that a worker must carry to take from this lane; None: none."""
    label = lane.removeprefix(SUSPECT)
    return label.removeprefix(LABEL) if label.startswith(LABEL) else None


def family_of(lane: str) -> str:
    """The lane as a look tells of it: those of all shares are one."""
    return SHARE if lane.startswith(SHARE) else lane


def open_to(labels: Iterable[str]) -> list[str]:
    """The lanes from which a worker with these labels may take. Those of shares are anybody's, and not among them."""
    own = [*(LABEL + label for label in labels), ANYBODYS]
    return [*own, *(SUSPECT + each for each in own)]


@dataclass(frozen=True, slots=True)
class Ageing:
    """How age counts; with None it does not, and a higher priority always goes first.

    A job that has been due for `ageing_s` counts as one of the next higher priority. All jobs age alike, so the order
    of two never changes while they wait, and needs no clock: each step of priority counts as being due `ageing_s`
    earlier, and who was due first goes first. So nothing is written while jobs wait, no lane is walked, and a claim is
    the same statement: only the order in which it is given the lanes differs.
    """

    ageing_s: float | None

    def rank(self, priority: int, run_at_us: int) -> float:
        """The place in the order: the least goes first."""
        if self.ageing_s is None:
            return -priority
        return run_at_us - priority * self.ageing_s * 1e6


STRICT: Final = Ageing(None)
