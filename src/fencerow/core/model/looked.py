"""What a removal that looks at some rows tells of its look."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class Looked(msgspec.Struct, Generic[T], frozen=True):
    """`after`: the name or place to go on after; the one from which all begins, when that was the last row. `rows`
    were looked at, and `gone` of them are removed."""

    after: T
    rows: int = 0
    gone: int = 0

    @property
    def is_worthwhile(self) -> bool:
        """Whether many of the rows could go, so that it pays to look at the next ones at once."""
        return self.gone * 10 >= self.rows > 0
