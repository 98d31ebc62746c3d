"""A chore: what a worker does besides its jobs, such as sweeping a user's table or delivering events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from fencerow.core.config import CoreConfig
from fencerow.core.errors import DeclarationError
from fencerow.core.model.wakeup import Queued, WakeUp
from fencerow.core.telemetry import Telemetry
from fencerow.db.due import Due
from fencerow.db.engine import Engine
from fencerow.db.text import shown

if TYPE_CHECKING:
    from fencerow.core.model.job import Claimed
    from fencerow.db.portion import Portion
    from fencerow.db.run import Operation, Steps

T = TypeVar("T")


class Chore(ABC):
    """Work that every worker does again and again beside its jobs, with no leader.

    If the database fails, the chore waits until it answers. Any other error is logged, counted and written to
    the worker's row, where `fencerow doctor` finds it; the chore runs again after a pause of up to a minute.
    Jobs go on meanwhile. A chore needs a `name`, for the logs, and a `tick`. The other methods are for chores
    that remember something, react to wake-ups or hold something.
    """

    name: str
    portion: Portion | None = None  # how much it does at once, where that may be too much
    jitter: float = (
        0.2  # of its pauses, so that workers do not all do it at once; 0.0 where an instant counts
    )
    hears: tuple[type, ...] = ()  # the kinds of wake-ups that `is_for` is asked about

    @abstractmethod
    async def tick(self) -> float:
        """Do the work that is there; returns the seconds until the next call."""

    def for_worker(self) -> Chore:
        """The chore that one worker runs: a new one for each worker, if the chore remembers something."""
        return self

    def told(self) -> str:
        """What a worker says of it in its log when it starts; its name, if that says enough."""
        return self.name

    def is_for(self, message: WakeUp | None) -> bool:  # noqa: ARG002 - for those that hear
        """Whether this wake-up, of a kind that it `hears`, makes the chore run at once. None: wake-ups may have been
        missed; each chore is asked then. Called in the event loop."""
        return False

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do just now, so that a worker which ends when nothing is left may end."""
        return True

    async def queues_soon(self) -> bool:
        """Whether the database has something for it that makes jobs due at once, heard of or not: a worker which ends
        when nothing is left asks at its end, and waits for them. May raise what the database does."""
        return False

    async def end(self, within_s: float) -> None:  # noqa: B027 - most hold nothing
        """The worker stops: finish the work under way, and release what is held. `tick` is not called any more."""


class Ticking(Protocol):
    """What a chore needs at least. It need not derive from `Chore`."""

    @property
    def name(self) -> str: ...

    async def tick(self) -> float: ...


def chore_of(given: Chore | Ticking) -> Chore:
    """What was given, as a chore.

    Raises:
        DeclarationError: it has no name, or no tick.
    """
    if isinstance(given, Chore):
        return given
    named = isinstance(getattr(given, "name", None), str) and not isinstance(given, type)
    if not named or not callable(getattr(given, "tick", None)):
        raise DeclarationError(
            f"{shown(given)} is no chore",
            "a chore has a name and `async def tick(self) -> float`",
            "give an object with both",
        )
    return _GivenChore(given)


class _GivenChore(Chore):
    """A chore that derives from nothing of ours: what it has besides name and tick is used, the rest is as usual."""

    hears = (object,)  # it cannot say which kinds, so it is asked about all

    def __init__(self, given: Ticking) -> None:
        self._given: Any = given
        self.name = given.name

    async def tick(self) -> float:
        pause_s: float = await self._given.tick()
        return pause_s

    def for_worker(self) -> Chore:
        return chore_of(self._given.for_worker()) if hasattr(self._given, "for_worker") else self

    def is_for(self, message: WakeUp | None) -> bool:
        return hasattr(self._given, "is_for") and bool(self._given.is_for(message))

    @property
    def is_idle(self) -> bool:
        return bool(getattr(self._given, "is_idle", True))

    async def queues_soon(self) -> bool:
        return hasattr(self._given, "queues_soon") and bool(await self._given.queues_soon())

    async def end(self, within_s: float) -> None:
        if hasattr(self._given, "end"):
            await self._given.end(within_s)


class Taking(Protocol):
    """Slots of this worker that want jobs, for one operation of a chore: see `core/worker/taking.py`."""

    def most(self) -> int:
        """How many jobs it is of use to let go now; 1 at least."""
        ...

    def claim(self, queue: str, ids: Sequence[str], workers: int) -> Steps[list[Claimed]]:
        """Claim the first of these, which the operation has locked and lets go, in the order in which they go."""
        ...

    async def run(self, operation: Operation[T], claimed: Callable[[T], Sequence[Claimed]]) -> T:
        """Run it, and hand what it claimed to the slots. It must not be repeatable."""
        ...


@dataclass(frozen=True, slots=True)
class Site:
    """Where a worker's chores work. `queues`: which it serves just now. `due`: what is due there beyond the database's
    now. `announce`: says that jobs were queued, to this worker and the others. `now_us`: the database's time, as this
    worker carries it on; None: it has not read it yet. `taking`: what the next operation of a chore may claim; None:
    nothing. One that was asked for must be run."""

    engine: Engine
    config: CoreConfig
    telemetry: Telemetry
    worker: str
    queues: Callable[[], Iterable[str]]
    due: Callable[[], Due]
    announce: Callable[[Sequence[Queued]], None]
    now_us: Callable[[], int | None]
    taking: Callable[[], Awaitable[Taking | None]]
