"""Orders: what operators want of a worker that runs, written on its row and carried out by itself."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import msgspec

from fencerow.core.errors import OrderRefused, OutcomeUnknown, WorkerGone, WorkerNotFound
from fencerow.core.model.state import WorkerState
from fencerow.core.model.wanted import OrderedChange, Stated, Wanted, changed, wanted_of
from fencerow.core.model.worker import WorkerRecord
from fencerow.core.store.workers import list_workers
from fencerow.db.run import Operation, Steps, as_int, execute, operation

ALIVE_MAX = 1_000  # workers that are looked at together


class Order(msgspec.Struct, frozen=True):
    """What is wanted of a worker after an order. `given` is false if this was wanted already, so nothing changed."""

    holder: str
    name: str
    version: int
    wanted: Wanted
    given: bool


@operation(alone=True, writes="workers")
def order_worker(
    holder: str, wanted: Wanted, *, version: int, actor: str | None, reason: str | None = None
) -> Steps[int | None]:
    """Write down what is wanted, if `version` is still the one that holds; returns the new one, None when refused."""
    text = msgspec.json.encode(wanted).decode()
    rows = yield from execute(
        "order_worker", holder=holder, version=version, wanted=text, actor=actor, reason=reason
    )
    return as_int(rows[0][0]) if rows else None


def ordering(
    holder: str,
    change: OrderedChange,
    *,
    actor: str | None,
    reason: str | None = None,
    version: int | None = None,
) -> Generator[Operation[Any], Any, Order]:
    """Order a change of one registration: look, work it out, write it. The worker carries it out by itself.

    Three operations, not one transaction: the version that was read is what makes it safe, on SQLite too, where
    statements on worker rows stand alone. With `version` only if that is still the one. Repeating it is harmless.

    Raises:
        WorkerNotFound: there is no such registration.
        WorkerGone: it has ended; `why` names the one that the process has now, if any.
        OrderRefused: somebody changed it first, or it is leaving, or its Fencerow is too old to be changed.
        InvalidInput: the change does not fit what the worker serves.
    """
    worker, stated = yield from _alive(holder)
    if version is not None and worker.wanted_version != version:
        raise _changed_first(worker)
    now = wanted_of(worker.wanted, stated)
    wanted = changed(now, change)
    if wanted == now:
        return Order(worker.id, worker.name, worker.wanted_version, now, given=False)
    try:
        given = yield order_worker(holder, wanted, version=worker.wanted_version, actor=actor, reason=reason)
    except OutcomeUnknown:
        given = None
    if given is None:
        # The reason is read in a later statement than the refusal, and so is the answer that was lost.
        after, _ = yield from _alive(holder)
        ours = (worker.wanted_version + 1, wanted, actor)
        if (after.wanted_version, after.wanted, after.wanted_by) != ours:
            raise _changed_first(after)
        given = after.wanted_version
    return Order(worker.id, worker.name, given, wanted, given=True)


def _alive(holder: str) -> Generator[Operation[Any], Any, tuple[WorkerRecord, Stated]]:
    """The registration and what it stated last, if it can be given orders."""
    found: list[WorkerRecord] = yield list_workers(holder=holder)
    if not found:
        raise WorkerNotFound(
            f"there is no worker {holder}",
            "no registration has this id, or it ended long ago",
            "see `fencerow workers`",
        )
    (worker,) = found
    if worker.state != WorkerState.ALIVE:
        raise gone(worker, (yield list_workers(state=WorkerState.ALIVE.value, limit=ALIVE_MAX)))
    if worker.stated is None:
        raise OrderRefused(
            f"worker {worker.name} cannot be changed while it runs",
            "its version of Fencerow takes no orders",
            "restart it with a newer version",
        )
    return worker, worker.stated


def gone(worker: WorkerRecord, alive: list[WorkerRecord]) -> WorkerGone:
    """Says that a registration has ended, and which one the same process has now."""
    what = "was declared dead" if worker.state == WorkerState.DEAD else "has stopped"
    same = (worker.name, worker.host, worker.pid)
    for other in alive:
        if (other.name, other.host, other.pid) == same:
            return WorkerGone(
                f"worker {worker.name} ({worker.id}) {what}",
                f"its process registered again as {other.id}",
                "look at that one; it keeps the worker's order",
            )
    return WorkerGone(
        f"worker {worker.name} ({worker.id}) {what}",
        "a worker that has ended takes no orders",
        "see `fencerow workers --state alive`",
    )


def _changed_first(worker: WorkerRecord) -> OrderRefused:
    return OrderRefused(
        f"worker {worker.name} was changed first by {worker.wanted_by or 'somebody'}",
        f"version {worker.wanted_version} holds: {described(worker)}",
        "look at it with `fencerow workers show`, then repeat the change if you still want it",
        version=worker.wanted_version,
    )


def described(worker: WorkerRecord) -> str:
    """What is wanted of a worker, in a line."""
    if worker.stated is None:
        return "as it was started"
    wanted = wanted_of(worker.wanted, worker.stated)
    words = [f"{'+'.join(group.queues)}:{group.slots}" for group in wanted.slot_groups]
    words += ["paused"] if wanted.paused else []
    words += ["leaving"] if wanted.leave else []
    return " ".join(words)
