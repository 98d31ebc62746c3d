"""What faults are given: the ground, the team, one source of chance, and where to write down what they did."""

from __future__ import annotations

import math
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tests.proof.storm.ground import Ground
from tests.proof.storm.team import Team

G = TypeVar("G", bound=Ground)

AN_HOUR = "clock jumped an hour"  # the trouble after which recovery has a bound of its own


@dataclass(frozen=True)
class Silence:
    """A worker that fell silent, by a kill or a stop: what it held is owed to the others from then on.

    One that was stopped speaks again. When it renews its lease then, it was not given up, and goes on with what it has.
    """

    worker: str
    at: float
    how: str
    until: float = math.inf  # when it was let go on; who was killed never is


@dataclass(frozen=True)
class Trouble:
    """A time in which nobody could be expected to recover anything: the whole database was struck."""

    what: str
    since: float
    until: float


@dataclass
class Scene(Generic[G]):
    """One storm under way."""

    ground: G
    team: Team
    chance: random.Random
    silences: list[Silence] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    # So many workers are stopped at a time: others must be there to take over.
    stops: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(2))

    store_turn: threading.Lock = field(default_factory=threading.Lock)  # one weather for all at a time

    @contextmanager
    def trouble(self, what: str) -> Iterator[None]:
        """Mark the time of the block as trouble of everybody's."""
        since = time.time()
        try:
            yield
        finally:
            self.troubles.append(Trouble(what, since, time.time()))


# Does its deed, and says whether it was seen to strike.
Fault = Callable[[Scene[G]], bool]


@dataclass(frozen=True)
class Kind(Generic[G]):
    """One kind of fault and how often it comes, relative to the others."""

    share: int
    strike: Fault[G]
    strikes_all: bool = False  # the whole database, so that only one such fault is under way at a time


@dataclass
class Tally:
    """How many faults of each kind struck, and how many were tried and not seen to strike."""

    confirmed: Counter[str] = field(default_factory=Counter)
    unseen: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)


def until(done: Callable[[], bool], within_s: float) -> bool:
    """Wait for something that no event tells; whether it came."""
    deadline = time.monotonic() + within_s
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
