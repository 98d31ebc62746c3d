"""Whose turn it is where a lane of a queue is divided between shares. No I/O.

It is deficit round robin (Shreedhar and Varghese, 1995) for jobs that all count the same: whoever's turn it is starts
as many jobs as its weight says, then the next. All that is kept is who had the last turn, and how many jobs were left
of it: what a share did not use while it had no jobs is not owed to it.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import cycle

from fencerow.core.model.job import Claimed

NOBODYS = ""  # stands for the jobs without a share, which are one more


@dataclass(frozen=True, slots=True)
class RingMember:
    """A share that has due jobs, and how many of them it may start in one turn."""

    share: str
    weight: int


@dataclass(frozen=True, slots=True)
class RingPlace:
    """Where the ring stands: who had the last turn, and how many jobs are left of it."""

    share: str = NOBODYS
    left: int = 0


@dataclass(frozen=True, slots=True)
class Ring:
    """Shares in their order behind one of them, as far as a look went: to `last`. `whole`: that was the way round."""

    members: tuple[RingMember, ...]
    whole: bool
    last: str


@dataclass(frozen=True, slots=True)
class ShareTurn:
    """A share may start `count` jobs now; its turn is over with `whole`."""

    share: str
    count: int
    whole: int


class LaneTurns:
    """The turns of the shares of one lane, for one claim after another until as many jobs were found as are wanted.

    Look, plan, claim, and say what was claimed: again while `goes_on`.
    """

    def __init__(self, place: RingPlace | None) -> None:
        self.place = place or RingPlace()
        self.after = self.until = self.place.share  # how far the looks went, and to where they go
        self._fresh = (
            place is None
        )  # nobody had a turn yet: many workers should not all begin with the same share
        self._members: deque[RingMember] = deque()
        self._whole = False
        self._turns: list[ShareTurn] = []

    @property
    def wants_look(self) -> bool:
        """Whether all shares that are known have had their turns, and there may be others."""
        return not self._members and not self._whole

    @property
    def goes_on(self) -> bool:
        """Whether a share may have jobs that were not claimed."""
        return bool(self._members)

    def looked(self, ring: Ring) -> None:
        """Shares were looked for behind `after`."""
        self._members.extend(ring.members)
        self._whole, self.after = ring.whole, ring.last
        if self._fresh and self._members:
            self._fresh = False
            self._members.rotate(random.randrange(len(self._members)))  # noqa: S311 (a place to begin, not a secret)

    def plan(self, wanted: int) -> dict[str, int]:
        """How many jobs of each share its turns take, if so many are wanted and no share runs out of them."""
        self._turns = list(self._planned(wanted))
        counts: dict[str, int] = {}
        for turn in self._turns:
            counts[turn.share] = counts.get(turn.share, 0) + turn.count
        return counts

    def _planned(self, wanted: int) -> Iterator[ShareTurn]:
        known = any(member.share == self.place.share for member in self._members)
        if self.place.left and (known or not self._whole):
            first = ShareTurn(self.place.share, min(self.place.left, wanted), self.place.left)
            wanted -= first.count
            yield first
        for member in cycle(self._members):
            if wanted <= 0:
                return
            turn = ShareTurn(member.share, min(member.weight, wanted), member.weight)
            wanted -= turn.count
            yield turn

    def claimed(self, jobs: Sequence[Claimed]) -> list[Claimed]:
        """What came of the plan: the jobs in the order of the turns. Whose jobs did not suffice has no more turns."""
        waiting: dict[str, deque[Claimed]] = {}
        for job in jobs:
            waiting.setdefault(job.share or NOBODYS, deque()).append(job)
        found: list[Claimed] = []
        short: set[str] = set()
        for turn in self._turns:
            of_share = waiting.get(turn.share, ())
            taken = [of_share.popleft() for _ in range(min(turn.count, len(of_share)))] if of_share else []
            found += taken
            if len(taken) < turn.count:
                short.add(turn.share)
            if taken:
                self.place = RingPlace(turn.share, turn.whole - len(taken))
        if self.place.share in short:
            self.place = RingPlace(self.place.share)  # nothing is owed to it
        self._go_on(short)
        return found

    def _go_on(self, short: Set[str]) -> None:
        """Whoever had the last turn is the last of the ring now."""
        names = [member.share for member in self._members]
        if self.place.share in names:
            self._members.rotate(-1 - names.index(self.place.share))
        self._members = deque(member for member in self._members if member.share not in short)
