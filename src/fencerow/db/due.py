"""Until when jobs are due, where the database's own clock does not say all."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Due:
    """Beyond the database's now, jobs are due until `until_us`, in its microseconds; 0: it alone decides.

    That holds for what was written before its clock went back. What was written since `since_us` knows the
    clock as it is now: a retry in five seconds means five seconds.
    """

    until_us: int = 0
    since_us: int = 0


OWN = Due()
