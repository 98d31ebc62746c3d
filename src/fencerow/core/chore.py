"""A chore: what a worker does besides its jobs, such as sweeping a user's table or delivering events."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from fencerow.core.config import Config
from fencerow.core.db.engine import Engine
from fencerow.core.model.wakeup import WakeUp
from fencerow.core.telemetry import Telemetry


class Chore(Protocol):
    """Something to be done again and again, in every worker at once and with no leader.

    Trouble of the database is waited out. Any other error is logged, counted and stated on the worker's row, where
    `fencerow doctor` finds it, and the chore is asked again after a pause of up to a minute; jobs go on meanwhile.
    """

    @property
    def name(self) -> str:
        """What logs call it."""
        ...

    async def tick(self) -> float:
        """Do what there is; returns the seconds after which it wants to be asked again."""
        ...


@runtime_checkable
class OwnChore(Chore, Protocol):
    """A chore that remembers something: each worker has one of its own."""

    def for_worker(self) -> Chore:
        """A fresh one."""
        ...


@runtime_checkable
class HearingChore(Chore, Protocol):
    """A chore that is asked at once when somebody says that there is something to do."""

    def is_for(self, message: WakeUp | None) -> bool:
        """Whether this wake-up is for it; None: some may have been missed. Called on the event loop."""
        ...


@runtime_checkable
class FinishingChore(Chore, Protocol):
    """A chore of which a worker that ends when nothing is left to do must know whether that is so."""

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do just now."""
        ...


@runtime_checkable
class EndingChore(Chore, Protocol):
    """A chore that has something to finish when the worker stops."""

    async def end(self, within_s: float) -> None:
        """Finish what is under way and give back what is held. `tick` is not called any more."""
        ...


@dataclass(frozen=True, slots=True)
class Site:
    """Where a worker's chores work. `queues`: which it serves just now."""

    engine: Engine
    config: Config
    telemetry: Telemetry
    worker: str
    queues: Callable[[], Iterable[str]]
