"""Who has the turns of exclusive keys, and who waits for one: looked at, never changed.

The guide: docs/guide/exclusive.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.exclusive.keys import ExclusiveKey, Holder, KeySummary, Waiter
else:
    __getattr__ = lazily(
        __name__,
        {
            "ExclusiveKey": "fencerow.exclusive.keys",
            "Holder": "fencerow.exclusive.keys",
            "KeySummary": "fencerow.exclusive.keys",
            "Waiter": "fencerow.exclusive.keys",
        },
    )

__all__ = [
    "ExclusiveKey",
    "Holder",
    "KeySummary",
    "Waiter",
]
