"""What a wing brings of limits that jobs name: whether somebody defined them, and what they let start.

Said once, when the package is imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from fencerow.db.run import Steps


class Held(NamedTuple):
    """The turns that are taken at a gate, or the jobs that run. `unclaimed`: of these turns nobody has started so many;
    None: to run is to have started."""

    taken: int = 0
    unclaimed: int | None = None

    def beside(self, given: int) -> Held:
        """With so many more, which are unclaimed."""
        return Held(self.taken + given, None if self.unclaimed is None else self.unclaimed + given)


NOBODY: Final = Held()


class LimitRule(Protocol):
    """A limit, locked until the transaction ends."""

    @property
    def counts(self) -> bool:
        """Whether it must be known how many have a turn under it."""
        ...

    @property
    def is_paced(self) -> bool:
        """Whether it must be known if somebody is left who waits under it."""
        ...

    @property
    def is_stopped(self) -> bool:
        """Whether those who have a turn and have not started are to wait again."""
        ...

    @property
    def news(self) -> str | None:
        """What people are to be told of it, once the transaction is committed."""
        ...

    def room(self, held: Held) -> int:
        """How many may get a turn now, beside those who have one."""
        ...

    def again_us(self, held: Held, given: Sequence[str]) -> int | None:
        """When time makes room after these jobs got a turn, in microseconds since 1970; None: it does not."""
        ...

    def keep(self, given: Sequence[str], *, waits: bool | None) -> Steps[None]:
        """Keep what is to be remembered, once these jobs have got a turn. `waits`: whether somebody is left who waits
        and is due; None: nobody looked."""
        ...


class Limiter(Protocol):
    """Knows the limits that are defined."""

    def lock(self, names: Sequence[str]) -> Steps[Mapping[str, LimitRule]]:
        """Those of these limits that somebody defined, locked in the order of their names."""
        ...

    def refuse_unknown(self, names: Sequence[str]) -> Steps[None]:
        """Look whether jobs may name these limits.

        Raises:
            FencerowError: one of them is not defined.
        """
        ...


_limiter: Limiter | None = None


def limit_by(limiter: Limiter) -> None:
    """From now on there is this."""
    global _limiter
    _limiter = limiter


def locked_limits(names: Sequence[str]) -> Steps[Mapping[str, LimitRule]]:
    """Lock those of these limits that are defined. Who is not in the answer bounds nobody."""
    return {} if _limiter is None else (yield from _limiter.lock(names))


def refuse_unknown_limits(names: Sequence[str]) -> Steps[None]:
    """Look whether jobs may name these limits.

    Raises:
        FencerowError: one of them is not defined.
    """
    if _limiter is not None:
        yield from _limiter.refuse_unknown(names)
