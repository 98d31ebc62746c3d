"""A chore that sleeps until there is something for it, so that a program which uses no such thing never loads it."""

from __future__ import annotations

from collections.abc import Callable

from fencerow.core.background.used import looks_at
from fencerow.core.chore import Chore
from fencerow.core.db.engine import Engine
from fencerow.core.db.run import Steps, execute, operation
from fencerow.core.model.wakeup import WakeUp


@operation(alone=True, repeatable=True, writes="")
def is_used(statement: str) -> Steps[bool]:
    """Whether a wing has anything in its tables: the named query that says so has a row then."""
    return bool((yield from execute(statement)))


class Dormant(Chore):
    """Looks every `every_s` seconds whether its wing's tables have rows; then it is that chore.

    Those that look at about the same time do so in one statement.

    `used`: the statement. `make`: makes the chore, and is the first to load it. `wanted`: whether the program itself
    has something for it, whatever the tables have. `hears`: the wake-ups after which it looks at once.
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
        self._engine = engine
        self._used = used
        self._make = make
        self._every_s = every_s
        self._wanted = wanted
        self._hears = hears
        self._chore: Chore | None = None  # from the first time on that there was something for it
        self._looked = False
        self._heard = False  # since it looked last

    def for_worker(self) -> Chore:
        return Dormant(
            self.name,
            self._engine,
            self._used,
            self._make,
            every_s=self._every_s,
            jitter=self.jitter,
            wanted=self._wanted,
            hears=self._hears,
        )

    async def tick(self) -> float:
        """Look, or do the chore's work."""
        if self._chore is None:
            if not self._wanted() and not await self._is_used():
                self._looked = True
                return self._every_s
            self._chore = self._make().for_worker()
        return await self._chore.tick()

    async def _is_used(self) -> bool:
        engine, heard = self._engine(), self._heard
        self._heard = False
        looks = looks_at(engine)
        used = await looks.is_used(engine, self._used, afresh=heard)
        if used:
            looks.forget(self._used)
        return used

    def is_for(self, message: WakeUp | None) -> bool:
        if self._chore is not None:
            return self._chore.is_for(message)
        hears = message is None or isinstance(message, self._hears)
        self._heard |= hears
        return hears

    @property
    def is_idle(self) -> bool:
        """Whether nothing was there when it looked last."""
        return self._looked if self._chore is None else self._chore.is_idle

    async def end(self, within_s: float) -> None:
        if self._chore is not None:
            await self._chore.end(within_s)
