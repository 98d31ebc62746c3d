"""What varies in a simulation: how long an attempt takes, whether it fails, when somebody submits. Fixed by a seed."""

from __future__ import annotations

import math
from random import Random

from fencerow.core.model.backoff import Backoff
from fencerow.planning.plan import JobPlan

Z95 = 1.6448536269514722  # of a normal distribution, 95 % lie below so many deviations above its mean
BACKOFF = Backoff()  # of jobs that say nothing of their own


class Chances:
    """One sequence of chances: the same seed gives the same simulation."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 (chances of a simulation, no secret)

    def duration_us(self, kind: JobPlan) -> int:
        """Lognormal through the mean and the p95; constant where they are the same."""
        mean_s, p95_s = float(kind.mean_s), float(kind.p95_s)
        if p95_s <= mean_s:
            return max(1, round(mean_s * 1e6))
        # ln(p95 / mean) = z * sigma - sigma² / 2; beyond its greatest value no lognormal has this p95.
        sigma = Z95 - math.sqrt(max(0.0, Z95**2 - 2 * math.log(p95_s / mean_s)))
        return max(1, round(self._random.lognormvariate(math.log(mean_s) - sigma**2 / 2, sigma) * 1e6))

    def fails(self, kind: JobPlan) -> bool:
        """Whether an attempt does."""
        return bool(kind.failure_share) and self._random.random() < kind.failure_share

    def retry_us(self, failures: int) -> int:
        """How long a job waits after so many failures."""
        return round(BACKOFF.delay_s(failures, self._random.random) * 1e6)

    def next_arrival_us(self, rate_per_hour: float) -> int:
        """Until somebody submits again."""
        return max(1, round(self._random.expovariate(rate_per_hour / 3600) * 1e6))

    def one_of(self, count: int) -> int:
        """An entity."""
        return self._random.randrange(count)
