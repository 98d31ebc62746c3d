"""Effects that happen once, and windows in which equal things count once.

The guide: docs/guide/once.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.guards.once.effect import Once, once
    from fencerow.guards.once.run import OnceRun
    from fencerow.guards.once.window import Admitted, DedupeWindow
else:
    __getattr__ = lazily(
        __name__,
        {
            "once": "fencerow.guards.once.effect",
            "Once": "fencerow.guards.once.effect",
            "OnceRun": "fencerow.guards.once.run",
            "DedupeWindow": "fencerow.guards.once.window",
            "Admitted": "fencerow.guards.once.window",
        },
    )

__all__ = [
    "once",
    "Once",
    "OnceRun",
    "DedupeWindow",
    "Admitted",
]
