"""Which lanes have a first job that claims passed over: somebody had locked it, or it is for others.

A look tells when the first job of a lane is due. Where a claim has come to the lane, and has only taken what stands
behind that job, it is asked for by itself: once after each look.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from fencerow.core.model.job import Claimed
from fencerow.core.model.lane import Ageing, label_of
from fencerow.core.store.claims import Mark

ASKED_MAX = 20  # lanes whose first job one round asks for

Key = tuple[int, str]  # the priority and the name of a lane


class Heads:
    """The first jobs of the lanes of one queue, since the last look at it."""

    def __init__(self) -> None:
        self._due_us: dict[Key, int] = {}  # when what was first there was due
        self._passed: set[Key] = set()  # a claim has come there
        self._taken_up: set[Key] = set()

    def seen(self, lane: Key, due_us: int) -> None:
        """This was first there, and due. What was asked for since the look is not noted again."""
        if lane not in self._taken_up:
            self._due_us.setdefault(lane, due_us)

    def came_to(self, lanes: Iterable[Key]) -> None:
        """A claim has taken what it could from these, or some."""
        self._passed.update(lanes)

    def took(self, jobs: Iterable[Claimed]) -> None:
        """These were claimed: what was first in their lanes may be among them."""
        for job in jobs:
            lane = job.priority, job.lane
            if job.run_at_us <= self._due_us.get(lane, -1):
                del self._due_us[lane]

    def any_passed_over(self) -> bool:
        """Whether any lane's first job is to be asked for by itself."""
        return not self._passed.isdisjoint(self._due_us)

    def passed_over(self) -> list[Key]:
        """The lanes whose first job is to be asked for by itself, the most urgent first."""
        return sorted(self._passed & self._due_us.keys(), reverse=True)[:ASKED_MAX]

    def took_up(self, lane: Key) -> None:
        """Somebody asks for it."""
        self._due_us.pop(lane, None)
        self._taken_up.add(lane)


def key_of(mark: Mark) -> Key:
    """The lane in which a claim starts there."""
    return mark.priority, mark.lane


def earlier(mark: Mark, other: Mark | None) -> Mark:
    """Of two in one lane the one that comes first; the other where they lie at the same place."""
    return mark if other is None or (mark.run_at_us, mark.id) < (other.run_at_us, other.id) else other


def by_turn(marks: Collection[Mark], ageing: Ageing) -> list[Mark]:
    """The lane whose turn it is first: by priority, and age where that counts; in each priority the lanes of labels
    come first, and then those of all others.

    A mark lies at the first job of its lane or just before it, so its instant is that job's, as far as is known.
    """
    first: dict[int, int] = {}
    for mark in marks:
        first[mark.priority] = min(mark.run_at_us, first.get(mark.priority, mark.run_at_us))
    return sorted(
        marks,
        key=lambda mark: (
            ageing.rank(mark.priority, first[mark.priority]),
            -mark.priority,
            label_of(mark.lane) is None,
            mark.lane,
        ),
    )


def reached(jobs: Sequence[Claimed], short: bool, lanes: Sequence[Mark]) -> list[Key]:
    """Of the lanes in whose order a claim took these jobs, those from which it took all that it could, or some."""
    in_order = [key_of(mark) for mark in lanes]
    if short:
        return in_order
    last = {(job.priority, job.lane) for job in jobs}
    return in_order[: max((place for place, each in enumerate(in_order, 1) if each in last), default=0)]
