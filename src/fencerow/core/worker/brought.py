"""What wings bring into a worker: chores, ways to run attempts (several in one call, or in other processes), what
keeps a claimed job from starting for a while, what bounds the claims from a queue, and verbs of the running job.

Said once, when the package is imported; see `core/wing.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fencerow.core.chore import Chore, Site
    from fencerow.core.config import CoreConfig
    from fencerow.core.model.handler import Handler
    from fencerow.core.model.job import Claimed
    from fencerow.core.model.outcome import Released
    from fencerow.core.worker.attempt import Attempt
    from fencerow.core.worker.calling import Calls
    from fencerow.core.worker.deciding import Decider
    from fencerow.core.worker.executor import Executor, RunsTogether
    from fencerow.db.run import Operation


class Apart(Protocol):
    """Runs attempts in other processes."""

    def finds(self, handler: Handler) -> bool:
        """Whether another process would find what it is to run."""
        ...

    async def run(self, attempt: Attempt) -> None:
        """Run one attempt to its outcome.

        Raises:
            NotImportable: it cannot be found there. Nothing was run, and nothing is reported.
        """
        ...

    async def close(self) -> None:
        """End every process."""
        ...


@dataclass(frozen=True, slots=True)
class BoundedClaim:
    """What a claim from a limited queue brought. `room`: how many jobs might have started; fewer than were wanted means
    that the limit was met, and then `again_s` says when time makes room, if it does. `news`: what people are to be told
    of limits."""

    jobs: list[Claimed]
    room: int
    again_s: float | None = None
    news: Sequence[str] = ()


if TYPE_CHECKING:
    # How many are wanted, and the claim of at most so many that is made under the limits' locks.
    BoundClaim = Callable[[str, int, Callable[[int], Operation[list[Claimed]]]], Operation[BoundedClaim]]
    MakeTogether = Callable[[Executor, Calls, Decider], RunsTogether]
    MakeApart = Callable[[Executor, Calls, Decider, CoreConfig], Apart]
    # The headers of a claimed job, and the database's time; None: it may start now.
    Hold = Callable[[Mapping[str, str], int], Released | None]


@dataclass(frozen=True, slots=True)
class Processes:
    """`declared` looks at a job when it is declared, `served` when a worker with these settings is made.

    Each raises NotImportable; `served` also ConfigError.
    """

    make: MakeApart
    declared: Callable[[Handler], None]
    served: Callable[[Handler, CoreConfig], None]


@dataclass(frozen=True, slots=True)
class Brought:
    """What there is; None where no wing brings it."""

    together: MakeTogether | None = None
    processes: Processes | None = None
    chores: tuple[Callable[[Site], Sequence[Chore]], ...] = ()
    hold: Hold | None = None
    bound_claim: BoundClaim | None = None
    queues_soon: tuple[Callable[[], Operation[bool]], ...] = ()


_brought = Brought()


def bring(found: Brought) -> None:
    """From now on there is this."""
    global _brought
    _brought = found


def brought() -> Brought:
    """All that was brought."""
    return _brought


def check_apart(handler: Handler, served_by: CoreConfig | None) -> None:
    """Whether another process could run this, as far as can be said when it is declared, or when a worker with these
    settings is to serve it.

    Raises:
        NotImportable: it could not find the job. ConfigError: it could not find the database.
    """
    processes = brought().processes
    assert processes is not None, "no wing brings child processes"
    if served_by is None:
        processes.declared(handler)
    else:
        processes.served(handler, served_by)
