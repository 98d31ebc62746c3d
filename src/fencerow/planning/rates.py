"""How often a schedule fires, in the mean."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from fencerow.schedules.evenly import Evenly
from fencerow.schedules.spec import Spec

HOUR_US: Final = 3_600_000_000
FROM_US: Final = 1_767_571_200_000_000  # Monday, 2026-01-05: whole weeks are counted from here
WEEKS_US: Final = 4 * 7 * 24 * HOUR_US
YEARS_US: Final = 3653 * 24 * HOUR_US
FEW: Final = 28  # fires in these weeks: then years are counted
FIRES_MAX: Final = 4 * 7 * 24 * 60  # one each minute


def rate_per_hour(spec: Spec) -> Fraction:
    """Fires in an hour. Exact where they are evenly spaced; else counted over four weeks, or ten years if few come."""
    if isinstance(spec.times, Evenly):
        return HOUR_US / spec.times.period
    found = _fires(spec, WEEKS_US)
    if len(found) > FIRES_MAX:  # several a minute: as far as was counted
        return Fraction(FIRES_MAX * HOUR_US, found[-1] - found[0])
    if len(found) >= FEW:
        return Fraction(len(found) * HOUR_US, WEEKS_US)
    return Fraction(len(_fires(spec, YEARS_US)) * HOUR_US, YEARS_US)


def _fires(spec: Spec, length_us: int) -> list[int]:
    return spec.fires(FROM_US - 1, FROM_US + length_us - 1, "", FIRES_MAX + 1)
