"""What a worker is made of, worked out from its queues and settings: pools, and what it says of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from fencerow.core.config import Config
from fencerow.core.db.connections import of_worker
from fencerow.core.db.engine import Engine
from fencerow.core.db.postgres import PostgresEngine
from fencerow.core.errors import ConfigError, TooManyHung
from fencerow.core.worker.begun import AHEAD
from fencerow.core.worker.brought import check_apart
from fencerow.core.worker.handler import Handler
from fencerow.core.worker.pool import Pool
from fencerow.version import __version__


def make_pools(
    queues: Mapping[str, int] | Sequence[str], slots: int, make: Callable[[Sequence[str], int], Pool]
) -> list[Pool]:
    """A pool for each queue with slots of its own, or one for all queues that share `slots`, each made by `make`.

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
    return [make(names, count) for names, count in groups]


def begun_least(pools: Iterable[Pool], handlers: Iterable[Handler]) -> int:
    """How many jobs may always have begun: what the slots run, and what ends while outcomes are being written."""
    each = max((handler.batch_max or 1 for handler in handlers), default=1)
    return sum(pool.slots for pool in pools) * each + AHEAD


def deadline_margin_s(config: Config) -> float:
    """By when an attempt should be over at the latest, beyond its time limit: what people are shown."""
    return config.lease_s + ending_margin_s(config)


def ending_margin_s(config: Config) -> float:
    """What a job may wait here before it starts, and take to be given up."""
    return config.prefetch_s + config.child_start_s + config.cancel_raise_s + config.cancel_kill_s


def check_children(handlers: Mapping[str, Handler], config: Config) -> None:
    """Whether child processes will find what they are to run, and the database.

    Raises:
        NotImportable: a job declared with `process=True` is not among the globals of a module.
        ConfigError: the settings name no database.
    """
    for handler in handlers.values():
        if handler.process:
            check_apart(handler, served=True)
            if config.url is None:
                raise ConfigError(
                    f"job {handler.name} runs in child processes, and the settings name no database",
                    "a child process opens its own connection",
                    "set url",
                )


def too_many_hung(count: int) -> TooManyHung:
    """Why a worker with so many handlers that do not end must be started again."""
    return TooManyHung(
        f"{count} handlers of this worker ignore their end and still run",
        "a thread cannot be killed; each keeps its memory and its locks",
        "let a supervisor start the worker again; give such jobs process=True, or timeouts of their own inside",
    )


def registration(pools: Sequence[Pool], handlers: Iterable[str]) -> dict[str, object]:
    """What the worker's row tells operators."""
    return {
        "queues": {queue: pool.slots for pool in pools for queue in pool.queues},
        "names": sorted(handlers),
        "slots": sum(pool.slots for pool in pools),
        "version": __version__,
    }


def connections(engine: Engine, handlers: Iterable[Handler]) -> Mapping[str, int]:
    """How many connections the worker's process opens at most, by what they are for; none on SQLite."""
    if not isinstance(engine, PostgresEngine):
        return {}
    return of_worker(engine.pool_max, plain=any(not handler.is_async for handler in handlers))


def described(pools: Iterable[Pool]) -> str:
    """The queues and their slots, for the log."""
    return ", ".join(f"{'+'.join(pool.queues)} ({pool.slots} slots)" for pool in pools)


def _groups(queues: Mapping[str, int] | Sequence[str], slots: int) -> list[tuple[tuple[str, ...], int]]:
    if isinstance(queues, Mapping):
        return [((queue,), count) for queue, count in queues.items()]
    return [(tuple(queues), slots)]
