"""A worker as its row says, and a job that it holds."""

from __future__ import annotations

from typing import Any

import msgspec

from fencerow.core.model.job import At, AtOrNone
from fencerow.core.model.wanted import Stated, Wanted


class WorkerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's registration."""

    id: str
    state: str
    name: str
    host: str
    pid: int
    lease_s: float
    registered_at_us: int
    renewed_at_us: int
    lease_until_us: int
    now_us: int
    ended_at_us: int | None = None
    info: Any = None
    stated: Stated | None = None  # None: a Fencerow that cannot be changed while it runs
    wanted: Wanted | None = None  # None: as it was started
    wanted_version: int = 0
    wanted_at_us: int | None = None
    wanted_by: str | None = None
    wanted_reason: str | None = None

    registered_at = At("registered_at_us")
    renewed_at = At("renewed_at_us")
    lease_until = At("lease_until_us")
    now = At("now_us")
    ended_at = AtOrNone("ended_at_us")
    wanted_at = AtOrNone("wanted_at_us")

    @property
    def queues(self) -> frozenset[str] | None:
        """The queues that it serves now; None if it did not say."""
        if self.stated is not None:
            return frozenset(queue for group in self.stated.slot_groups for queue in group.queues)
        return _named(self.info, "queues")

    @property
    def names(self) -> frozenset[str] | None:
        """The jobs that it knows; None if it did not say."""
        return _named(self.info, "names")

    @property
    def labels(self) -> frozenset[str]:
        """The labels that it carries: jobs that ask for one of them wait for such workers."""
        return _named(self.info, "labels") or frozenset()

    @property
    def slots(self) -> int | None:
        """How many jobs it runs at a time; None if it did not say."""
        if self.stated is not None:
            return sum(group.slots for group in self.stated.slot_groups)
        slots = self.info.get("slots") if isinstance(self.info, dict) else None
        return slots if isinstance(slots, int) else None

    @property
    def connections(self) -> int | None:
        """How many connections to the server its process opens at most; None if it did not say."""
        found = self.info.get("connections") if isinstance(self.info, dict) else None
        return found if isinstance(found, int) else None

    @property
    def claims(self) -> bool:
        """Whether it claims jobs: it is neither paused nor leaving."""
        return self.stated is None or not (self.stated.paused or self.stated.leaving)


def _named(info: Any, what: str) -> frozenset[str] | None:
    value = info.get(what) if isinstance(info, dict) else None
    return frozenset(map(str, value)) if isinstance(value, dict | list) else None
