"""A chore that sleeps until there is something for it, so that a program which uses no such thing never loads it."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

from fencerow.core.chore import Chore
from fencerow.core.model.wakeup import WakeUp
from fencerow.db.engine import Engine


class Dormant(Chore):
    """Sleeps until its wing's tables have rows; then it is that chore.

    `Sleepers` looks for it, every `every_s` seconds, and rouses it: it ticks from then on only.

    `used`: the statement. `make`: makes the chore, and is the first to load it. `wanted`: whether the program itself
    has something for it, whatever the tables have. `hears`: the wake-ups after which it looks at once; they are all
    that the chore hears which it makes.
    """

    def __init__(
        self,
        name: str,
        engine: Callable[[], Engine],
        used: str,
        make: Callable[[], Chore],
        *,
        every_s: float,
        jitter: float = Chore.jitter,
        wanted: Callable[[], bool] = lambda: False,
        hears: tuple[type, ...] = (),
    ) -> None:
        self.name = name
        self.jitter = jitter
        self.engine = engine
        self.used = used
        self.every_s = every_s
        self.is_wanted = wanted
        self._make = make
        self.hears = hears
        self._chore: Chore | None = None  # from the first time on that there was something for it
        self._looked = False
        self._is_roused = False

    def for_worker(self) -> Chore:
        return copy(self)  # which has been neither looked for nor roused: only such copies are

    def looked_at(self) -> None:
        """Somebody has looked for it."""
        self._looked = True

    def rouse(self) -> None:
        """There is something for it: it ticks from now on."""
        self._is_roused = True

    async def tick(self) -> float:
        """Do the chore's work. It has been roused."""
        if self._chore is None:
            self._chore = self._make().for_worker()
        return await self._chore.tick()

    def is_for(self, message: WakeUp | None) -> bool:
        if self._chore is not None:
            return self._chore.is_for(message)
        return message is None or isinstance(message, self.hears)

    @property
    def is_idle(self) -> bool:
        """Whether nothing was there when it looked last."""
        if self._chore is not None:
            return self._chore.is_idle
        return self._looked and not self._is_roused

    async def end(self, within_s: float) -> None:
        if self._chore is not None:
            await self._chore.end(within_s)
