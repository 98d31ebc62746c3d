"""How many jobs run at once, and how fast and when they start: limits, over all processes, changed at run time.

The guide: docs/guide/limits.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.limits.definition import Limit
    from fencerow.limits.limits import LimitRecord
    from fencerow.limits.rate import Breaker, Rate
else:
    __getattr__ = lazily(
        __name__,
        {
            "Breaker": "fencerow.limits.rate",
            "Limit": "fencerow.limits.definition",
            "LimitRecord": "fencerow.limits.limits",
            "Rate": "fencerow.limits.rate",
        },
    )

__all__ = [
    "Breaker",
    "Limit",
    "LimitRecord",
    "Rate",
]
