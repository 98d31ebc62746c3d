"""The rows of a source, replaced as a whole.

The guide: docs/guide/once.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.guards.replace.deciding import Found
    from fencerow.guards.replace.replace import forget_source, replace_for
    from fencerow.guards.replace.replacing import Replacing
else:
    __getattr__ = lazily(
        __name__,
        {
            "replace_for": "fencerow.guards.replace.replace",
            "Replacing": "fencerow.guards.replace.replacing",
            "Found": "fencerow.guards.replace.deciding",
            "forget_source": "fencerow.guards.replace.replace",
        },
    )

__all__ = [
    "replace_for",
    "Replacing",
    "Found",
    "forget_source",
]
