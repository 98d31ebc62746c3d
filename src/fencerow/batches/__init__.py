"""Many jobs in one call of a handler, each with an outcome of its own.

The guide: docs/guide/batches.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.batches.item import BatchItem
else:
    __getattr__ = lazily(
        __name__,
        {
            "BatchItem": "fencerow.batches.item",
        },
    )

__all__ = [
    "BatchItem",
]
