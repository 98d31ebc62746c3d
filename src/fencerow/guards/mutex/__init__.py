"""One holder at a time, under a token that never goes back.

The guide: docs/guide/mutex.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.guards.mutex.advisory import (
        aadvisory_lock,
        advisory_lock,
        atry_advisory_lock,
        try_advisory_lock,
    )
    from fencerow.guards.mutex.mutex import Mutex
else:
    __getattr__ = lazily(
        __name__,
        {
            "Mutex": "fencerow.guards.mutex.mutex",
            "advisory_lock": "fencerow.guards.mutex.advisory",
            "aadvisory_lock": "fencerow.guards.mutex.advisory",
            "try_advisory_lock": "fencerow.guards.mutex.advisory",
            "atry_advisory_lock": "fencerow.guards.mutex.advisory",
        },
    )

__all__ = [
    "Mutex",
    "advisory_lock",
    "aadvisory_lock",
    "try_advisory_lock",
    "atry_advisory_lock",
]
