"""What a proxy can do to a connection at an exact statement, and the record of what it did.

Every fault is aimed at a statement: the n-th whose text holds `text`. It strikes once, and counts only then.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class Phase(StrEnum):
    """Where in the exchange of a statement and its reply a fault strikes."""

    BEFORE = "before"  # cut: the server never sees the statement
    UNANSWERED = "unanswered"  # cut: the server has done it, and no byte of the reply arrives
    DURING = "during"  # cut: the server has done it, and part of the reply arrives
    AFTER = "after"  # cut: right after the whole reply arrived
    DELAY = "delay"  # the reply arrives `seconds` later
    TRICKLE = "trickle"  # the reply arrives byte by byte, `seconds` between two
    DEAF = "deaf"  # half-open: the statement and all after it never arrive; the connection stays
    MUTE = "mute"  # half-open: the server does it, and no reply ever arrives; the connection stays


CUTS = (Phase.BEFORE, Phase.UNANSWERED, Phase.DURING, Phase.AFTER)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault for the `nth` statement from now on whose text holds `text`.

    `keep_bytes` is how much of the reply arrives in `DURING` (by default half). `reset`: a cut
    before the reply is an RST instead of an orderly FIN (later it could take back what was delivered).
    """

    phase: Phase
    text: str = "COMMIT"
    nth: int = 1
    seconds: float = 0.0
    keep_bytes: int | None = None
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault that struck: at which statement, when (`time.monotonic()`), and how much of the reply got through."""

    fault: Fault
    statement: str
    at: float
    sent_bytes: int = 0


@dataclass(slots=True)
class _Armed:
    fault: Fault
    left: int  # statements that fit, until it strikes


@dataclass
class Plan:
    """The faults that wait for their statement, and those that struck. Safe from any thread."""

    strikes: list[Strike] = field(default_factory=list[Strike])
    _armed: list[_Armed] = field(default_factory=list[_Armed])
    _dice: Dice | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def arm(self, faults: Iterable[Fault]) -> None:
        with self._lock:
            self._armed += [_Armed(fault, fault.nth) for fault in faults]

    def throw(self, dice: Dice | None) -> None:
        """Let dice decide for each statement that no fault is aimed at; None ends it."""
        with self._lock:
            self._dice = dice

    def disarm(self) -> list[Fault]:
        """Forget what has not struck, and return it."""
        with self._lock:
            left, self._armed, self._dice = [each.fault for each in self._armed], [], None
            return left

    def aimed_at(self, statement: str) -> Fault | None:
        """The fault that this statement meets, if any: it is taken off the plan."""
        with self._lock:
            for each in self._armed:
                if holds(statement, each.fault.text):
                    each.left -= 1
            ready = next(
                (each for each in self._armed if each.left <= 0 and holds(statement, each.fault.text)), None
            )
            if ready is not None:
                self._armed.remove(ready)
                return ready.fault
            return self._dice.thrown(statement) if self._dice is not None else None

    def struck(self, fault: Fault, statement: str, sent_bytes: int = 0) -> None:
        with self._lock:
            self.strikes.append(Strike(fault, statement, time.monotonic(), sent_bytes))

    def count(self) -> Counter[Phase]:
        """How many faults of each phase struck."""
        with self._lock:
            return Counter(strike.fault.phase for strike in self.strikes)


class Dice:
    """Faults by seed: each statement that holds one of `texts` meets one with the given chance.

    The same seed gives the same sequence of throws; which statement meets which throw is the order of
    their arrival, so it is the same again as long as one connection is used.
    """

    def __init__(
        self,
        seed: int,
        chance: float,
        *,
        texts: Sequence[str] = ("COMMIT",),
        phases: Sequence[Phase] = CUTS,
        seconds: float = 0.05,
        resets: float = 0.5,
    ) -> None:
        self._random = random.Random(seed)  # noqa: S311 (a storm, not a secret)
        self._chance = chance
        self._texts = tuple(texts)
        self._phases = tuple(phases)
        self._seconds = seconds
        self._resets = resets

    def thrown(self, statement: str) -> Fault | None:
        if not any(holds(statement, text) for text in self._texts):
            return None
        if self._random.random() >= self._chance:
            return None
        phase = self._random.choice(self._phases)
        return Fault(phase, seconds=self._seconds, reset=self._random.random() < self._resets)


def holds(statement: str, text: str) -> bool:
    """Whether the statement holds the text. READ COMMITTED, which a BEGIN may say, holds no COMMIT."""
    return text in statement.replace("READ COMMITTED", "")
