"""Whose turn it is where a priority of a queue is divided between lanes in turn. No I/O.

It is deficit round robin (Shreedhar and Varghese, 1995) for jobs that all count the same: whoever's turn it is starts
as many jobs as its weight says, then the next. Jobs of no lane in turn are in one more. All that has
to be kept is who had the last turn, and how many jobs were left of it: what a lane did not use while it had no jobs is
not owed to it. Which lanes have jobs is known from one look to the next, and for each where its next claim
starts.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, cycle

from fencerow.core.model.job import Claimed
from fencerow.core.model.lane import ANYBODYS

START = "00000000-0000-0000-0000-000000000000"


@dataclass(slots=True)
class RingMember:
    """A lane that has due jobs, how many of them it may start in one turn, and where its next claim starts."""

    lane: str
    weight: int
    mark_us: int = 0
    mark_id: str = START


@dataclass(frozen=True, slots=True)
class RingPlace:
    """Where the ring stands: which lane had the last turn, and how many jobs are left of it."""

    lane: str = ANYBODYS
    left: int = 0


@dataclass(frozen=True, slots=True)
class Ring:
    """Lanes in turn behind one of them in the order of their names, as far as a look went: to `last`.

    `members` have a due job; the names begin again before number `begins` of them, if they do. `whole`: that was the
    way round. `weight`: of the jobs that are in none. `later_us`: when the first of those that have none is due.
    """

    members: tuple[RingMember, ...]
    whole: bool
    last: str
    begins: int | None = None
    weight: int = 1
    later_us: int | None = None


@dataclass(frozen=True, slots=True)
class LaneTurn:
    """A lane may start `count` jobs now; its turn is over with `whole`."""

    member: RingMember
    count: int
    whole: int


class LaneTurns:
    """The turns of the lanes of one priority. Look while it `wants_look`, plan, claim, and say what was claimed."""

    def __init__(self, place: RingPlace | None = None) -> None:
        self.place = place or RingPlace()
        # Nobody had a turn yet: many workers should not all begin with the same lane.
        self._fresh = place is None
        self._plan: list[LaneTurn] = []
        self._cycled = 0  # turns of the plan that go round, beside the rest of the last one
        self.restart(0)

    def restart(self, from_us: int) -> None:
        """Which lanes have jobs that are due from then on is to be looked at again."""
        self.from_us = from_us
        self._ahead: deque[RingMember] = deque()  # they have had no turn since they were seen
        self._behind: deque[RingMember] = deque()  # they had theirs, in this order
        self._whole = False
        self.after = self.until = self.place.lane  # how far the looks went, and to where they go
        self._weight = 1

    def wants_look(self, wanted: int) -> bool:
        """Whether more lanes must be known before so many jobs are claimed."""
        return not self._whole and len(self._ahead) < wanted

    @property
    def is_over(self) -> bool:
        """Whether all lanes are known, and none has jobs that were not claimed."""
        return self._whole and not self._ahead and not self._behind

    def looked(self, ring: Ring, *, anybodys: bool) -> None:
        """Lanes were looked for behind `after`. `anybodys`: jobs of no lane in turn are due as well."""
        members = list(ring.members)
        begins = len(members) if ring.begins is None and ring.whole else ring.begins
        if anybodys and begins is not None:
            members.insert(begins, RingMember(ANYBODYS, ring.weight))
        self._ahead.extend(members)
        self._whole, self.after, self._weight = ring.whole, ring.last, ring.weight
        if self._fresh and self._ahead:
            self._fresh = False
            self._ahead.rotate(random.randrange(len(self._ahead)))  # noqa: S311 (a place to begin, not a secret)

    def anybodys_came(self) -> None:
        """A job of no lane in turn was queued."""
        if self._whole and self._member(ANYBODYS) is None:
            self._ahead.append(RingMember(ANYBODYS, self._weight))

    def plan(self, wanted: int) -> list[tuple[RingMember, int]]:
        """How many jobs of each lane its turns take, if so many are wanted and no lane runs out of them."""
        self._plan = list(self._planned(wanted))
        counts: dict[str, int] = {}
        members: dict[str, RingMember] = {}
        for turn in self._plan:
            lane = turn.member.lane
            members[lane] = turn.member
            counts[lane] = counts.get(lane, 0) + turn.count
        return [(members[lane], count) for lane, count in counts.items()]

    def _planned(self, wanted: int) -> Iterator[LaneTurn]:
        self._cycled = 0
        last = self._member(self.place.lane) if self.place.left else None
        if self.place.left and (last is not None or not self._whole):
            member = last or RingMember(self.place.lane, self.place.left)
            first = LaneTurn(member, min(self.place.left, wanted), self.place.left)
            wanted -= first.count
            yield first
        members = cycle(chain(self._ahead, self._behind)) if self._whole else iter(self._ahead)
        for member in members:
            if wanted <= 0:
                return
            turn = LaneTurn(member, min(member.weight, wanted), member.weight)
            wanted -= turn.count
            self._cycled += 1
            yield turn

    def claimed(self, jobs: Sequence[Claimed]) -> tuple[list[Claimed], set[str]]:
        """What came of the plan: the jobs in the order of the turns, and the lanes whose jobs did not suffice. These
        have no more turns until a look finds them again."""
        waiting: dict[str, deque[Claimed]] = {}
        for job in jobs:
            waiting.setdefault(job.lane, deque()).append(job)
        found: list[Claimed] = []
        short: set[str] = set()
        for turn in self._plan:
            lane = turn.member.lane
            of_lane = waiting.get(lane, deque())
            taken = [of_lane.popleft() for _ in range(min(turn.count, len(of_lane)))]
            found += taken
            if len(taken) < turn.count:
                short.add(lane)
            if taken:
                turn.member.mark_us, turn.member.mark_id = taken[-1].run_at_us, taken[-1].id
                self.place = RingPlace(lane, turn.whole - len(taken))
        if self.place.lane in short:
            self.place = RingPlace(self.place.lane)  # nothing is owed to it
        self._go_on(short)
        return found, short

    def _go_on(self, short: set[str]) -> None:
        """Whoever had the last turn is the last of the ring now."""
        for _ in range(self._cycled):
            if not self._ahead:
                self._ahead, self._behind = self._behind, self._ahead
            if self._ahead:
                self._behind.append(self._ahead.popleft())
        self._plan, self._cycled = [], 0
        if not self._whole and not self._ahead and not self._behind:
            self.restart(self.from_us)  # a hint has asked for a new look meanwhile: from the new place on
        if short:
            self._ahead = deque(member for member in self._ahead if member.lane not in short)
            self._behind = deque(member for member in self._behind if member.lane not in short)

    def _member(self, lane: str) -> RingMember | None:
        return next((each for each in chain(self._behind, self._ahead) if each.lane == lane), None)
