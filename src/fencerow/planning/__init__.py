"""Capacity: what the keys, slots and limits of a plan can do, and how long a backlog lasts.

The command is `fencerow plan`. The guide: docs/guide/capacity.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.planning.formulas import (
        attempts_mean,
        capacity_per_hour,
        drain_minutes,
        entities_max,
        headroom_minutes,
        load_minutes,
        slots_needed,
    )
else:
    __getattr__ = lazily(
        __name__,
        {
            "attempts_mean": "fencerow.planning.formulas",
            "capacity_per_hour": "fencerow.planning.formulas",
            "drain_minutes": "fencerow.planning.formulas",
            "entities_max": "fencerow.planning.formulas",
            "headroom_minutes": "fencerow.planning.formulas",
            "load_minutes": "fencerow.planning.formulas",
            "slots_needed": "fencerow.planning.formulas",
        },
    )

__all__ = [
    "load_minutes",
    "headroom_minutes",
    "capacity_per_hour",
    "entities_max",
    "slots_needed",
    "drain_minutes",
    "attempts_mean",
]
