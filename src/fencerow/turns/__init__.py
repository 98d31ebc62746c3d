"""Who has the turns of exclusive keys, and who waits for one: looked at, never changed.

The guide: docs/guide/exclusive.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.turns.keys import ExclusiveKey, Holder, KeySummary, Waiter
else:
    __getattr__ = lazily(
        __name__,
        {
            "ExclusiveKey": "fencerow.turns.keys",
            "Holder": "fencerow.turns.keys",
            "KeySummary": "fencerow.turns.keys",
            "Waiter": "fencerow.turns.keys",
        },
    )

__all__ = [
    "ExclusiveKey",
    "Holder",
    "KeySummary",
    "Waiter",
]
