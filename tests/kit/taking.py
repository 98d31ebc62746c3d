"""Slots of a worker that want jobs, where no worker runs: see `core/worker/taking.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from fencerow.core.model.job import Claimed
from fencerow.core.store.claims import claim_given
from fencerow.db.run import Operation, Steps
from fencerow.turns.gates import ROOM_MAX

T = TypeVar("T")


class Slots:
    """So many slots of this worker want jobs of these names."""

    def __init__(
        self, holder: str, count: int, names: Sequence[str] = ("send",), *, alone: bool = False
    ) -> None:
        """`alone`: no other worker lives."""
        self._is_one_of_many = not alone
        self._holder = holder
        self._count = count
        self._names = names

    def most(self) -> int:
        """As many as may have a turn: others may want them."""
        return ROOM_MAX if self._is_one_of_many else self._count

    def claim(self, queue: str, ids: Sequence[str], workers: int) -> Steps[list[Claimed]]:
        """Claim as many of these as there are slots."""
        return (
            yield from claim_given(
                queue, ids[: self._count], holder=self._holder, names=self._names, margin_s=10.0
            )
        )

    async def run(self, operation: Operation[T], claimed: Callable[[T], Sequence[Claimed]]) -> T:
        """No worker runs it here."""
        raise NotImplementedError
