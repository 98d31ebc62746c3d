"""How fast jobs may start, and when failures stop them: `Rate`, `Breaker`. Checked when they are made."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fencerow.core.errors import InvalidInput
from fencerow.core.model.seconds import Seconds, in_seconds, is_finite, keep_in_seconds
from fencerow.db.text import shown
from fencerow.limits.breaking import Breaking
from fencerow.limits.pacing import Pace

BURST_MAX = 100_000
INTERVAL_US_MIN = 100  # below it the time between two statements decides, and no rate
INTERVAL_S_MAX = 366 * 86_400.0
FAILURES_MAX = 1_000
UNITS = {
    "s": 1.0,
    "sec": 1.0,
    "min": 60.0,
    "m": 60.0,
    "h": 3_600.0,
    "hour": 3_600.0,
    "d": 86_400.0,
    "day": 86_400.0,
}
RATE = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)?\s*([a-z]+)", re.ASCII)
BREAKER = re.compile(r"(\d{1,18})\s*/\s*(\d+(?:\.\d+)?)?\s*([a-z]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `count` starts in each `per_s` seconds, evenly spread.

    `burst`: how many may start at once after a pause; in any stretch of time there are then at most `burst - 1` more.
    `strict`: each start is measured from the one before, so that two never lie closer together than the interval, also
    when workers are late: a job that got its turn and has not started keeps the next one waiting. It goes without a
    burst.
    """

    count: float
    per_s: float = 1.0
    burst: int = 1
    strict: bool = False

    if TYPE_CHECKING:

        def __init__(
            self, count: float, per_s: Seconds = 1.0, burst: int = 1, strict: bool = False
        ) -> None: ...

    def __post_init__(self) -> None:
        keep_in_seconds(self, "per_s")
        for what, value in {"count": self.count, "per_s": self.per_s}.items():
            if not is_finite(value) or value <= 0:
                raise InvalidInput(
                    f"{what} of a rate is {shown(value)}", "it must be a number above 0", f"correct {what}"
                )
        check_whole(self.burst, "burst of a rate", BURST_MAX)
        interval_s = self.per_s / self.count
        if interval_s > INTERVAL_S_MAX or interval_s * 1e6 < INTERVAL_US_MIN:
            raise InvalidInput(
                f"a rate of {self.count:g} in {self.per_s:g} s means a start each {interval_s:g} s",
                f"starts are kept apart by {INTERVAL_US_MIN / 1e6:g} s at least, and by a year at most",
                "correct the rate, or leave it out",
            )
        if self.strict and self.burst != 1:
            raise InvalidInput(
                f"a strict rate has a burst of {self.burst}",
                "strict means that no two start at once",
                "leave burst or strict out",
            )

    @classmethod
    def parse(cls, text: object, *, burst: int = 1, strict: bool = False) -> Rate:
        """The rate that a text means: `100/min`, `1/s`, `5/10s`, `0.5/h`.

        Raises:
            InvalidInput: it cannot be read.
        """
        found = RATE.fullmatch(text.strip()) if isinstance(text, str) else None
        if found is None or found[3] not in UNITS:
            raise InvalidInput(
                f"the rate {ascii(text)[:60]} cannot be read",
                "expected a number and a time, as in 100/min, 1/s, 5/10s or 0.5/h",
                "correct it",
            )
        return cls(float(found[1]), float(found[2] or 1) * UNITS[found[3]], burst, strict)

    @property
    def pace(self) -> Pace:
        """In whole microseconds, never faster than was said."""
        return Pace(math.ceil(round(self.per_s / self.count * 1e6, 3)), self.burst)

    def __str__(self) -> str:
        unit = next((name for name in ("s", "min", "h", "d") if UNITS[name] == self.per_s), None)
        per = unit or f"{self.per_s:g}s"
        burst = f", burst {self.burst}" if self.burst > 1 else ""
        return f"{self.count:g}/{per}{burst}{', strict' if self.strict else ''}"


@dataclass(frozen=True, slots=True)
class Breaker:
    """After `failures` failures within `within_s` seconds nothing starts for `stop_s`; then `trials` jobs may try.

    If one of these succeeds, all may start; a failure stops it again; one that ends in neither way gives its place to
    another. No attempt is spent while it stops. A failure is an attempt that ended in an error or ran out of time, not
    one that was snoozed or cancelled, that raised Fail, or whose process died.
    """

    failures: int
    within_s: float = 60.0
    stop_s: float = 60.0
    trials: int = 1

    if TYPE_CHECKING:

        def __init__(
            self, failures: int, within_s: Seconds = 60.0, stop_s: Seconds = 60.0, trials: int = 1
        ) -> None: ...

    def __post_init__(self) -> None:
        keep_in_seconds(self, "within_s", "stop_s")
        check_whole(self.failures, "failures of a breaker", FAILURES_MAX)
        check_whole(self.trials, "trials of a breaker", FAILURES_MAX)
        for what, value in {"within_s": self.within_s, "stop_s": self.stop_s}.items():
            if not is_finite(value) or not 0.001 <= value <= INTERVAL_S_MAX:
                raise InvalidInput(
                    f"{what} of a breaker is {shown(value)}",
                    "it must be a number of seconds, from 0.001 to a year",
                    f"correct {what}",
                )

    @classmethod
    def parse(cls, text: object, *, stop_s: Seconds = 60.0, trials: int = 1) -> Breaker:
        """The breaker that a text means: `5/60s` for five failures within a minute.

        Raises:
            InvalidInput: it cannot be read.
        """
        found = BREAKER.fullmatch(text.strip()) if isinstance(text, str) else None
        if found is None or found[3] not in UNITS:
            raise InvalidInput(
                f"the breaker {ascii(text)[:60]} cannot be read",
                "expected a number of failures and a time, as in 5/60s or 10/min",
                "correct it",
            )
        return cls(int(found[1]), float(found[2] or 1) * UNITS[found[3]], in_seconds(stop_s), trials)

    @property
    def breaking(self) -> Breaking:
        """In whole microseconds."""
        return Breaking(self.failures, round(self.within_s * 1e6), round(self.stop_s * 1e6), self.trials)

    def __str__(self) -> str:
        failures = f"{self.failures} failures in {self.within_s:g} s"
        return f"{failures} stop it for {self.stop_s:g} s, then {self.trials} may try"


def check_whole(value: object, what: str, most: int) -> None:
    """Refuse what is no whole number from 1 to `most`.

    Raises:
        InvalidInput: it is none.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise InvalidInput(
            f"{what} is {shown(value)}", f"it must be a whole number from 1 to {most}", "correct it"
        )
