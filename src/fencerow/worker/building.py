"""What a worker is made of, worked out from its queues and settings: pools, and what it says of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from fencerow.config import Config
from fencerow.errors import ConfigError
from fencerow.version import __version__
from fencerow.worker.pool import Pool


def make_pools(
    queues: Mapping[str, int] | Sequence[str], slots: int, prefetch_s: float, wake: Callable[[str], None]
) -> list[Pool]:
    """A pool for each queue with slots of its own, or one for all queues that share `slots`.

    `wake` is called with a queue of the pool that has room again.

    Raises:
        ConfigError: a queue would have no slot.
    """
    groups = _groups(queues, slots)
    for names, count in groups:
        if count < 1:
            raise ConfigError(
                f"queue {names[0]!r} was given {count} slots",
                "a queue without a slot would never run anything",
                "give it at least one, or leave it out",
            )
    return [Pool(names, count, prefetch_s, wake) for names, count in groups]


def deadline_margin_s(config: Config) -> float:
    """What a job may wait here before it starts, and take to be given up, before others end the attempt."""
    return config.lease_s + config.prefetch_s + config.cancel_raise_s + config.cancel_kill_s


def registration(pools: Sequence[Pool], handlers: Iterable[str]) -> dict[str, object]:
    """What the worker's row tells operators."""
    return {
        "queues": {queue: pool.slots for pool in pools for queue in pool.queues},
        "names": sorted(handlers),
        "slots": sum(pool.slots for pool in pools),
        "version": __version__,
    }


def described(pools: Iterable[Pool]) -> str:
    """The queues and their slots, for the log."""
    return ", ".join(f"{'+'.join(pool.queues)} ({pool.slots} slots)" for pool in pools)


def _groups(queues: Mapping[str, int] | Sequence[str], slots: int) -> list[tuple[tuple[str, ...], int]]:
    if isinstance(queues, Mapping):
        return [((queue,), count) for queue, count in queues.items()]
    return [(tuple(queues), slots)]
