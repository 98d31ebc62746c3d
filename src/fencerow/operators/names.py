"""Workers by their names: a timeline and a job have the ids of workers, which say nothing to a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fencerow.core.model.ids import SHAPE
from fencerow.core.store.workers import list_workers
from fencerow.db.run import Procedure, ask

LOOKED_MAX = 20


def worker_names(ids: Iterable[str | None]) -> Procedure[dict[str, str]]:
    """Name and host of the workers among these, by their ids; nothing of those whose registration is gone.

    What is no id, such as the name of a person, is passed over. At most the first 20 workers are looked up.
    """
    wanted = list(dict.fromkeys(each for each in ids if each is not None and SHAPE.fullmatch(each)))
    found: dict[str, str] = {}
    for holder in wanted[:LOOKED_MAX]:
        for worker in (yield from ask(list_workers(holder=holder, limit=1))):
            found[holder] = f"{worker.name} on {worker.host}, pid {worker.pid}"
    return found


def named(who: str | None, names: Mapping[str, str]) -> str | None:
    """The worker by its name, where that is known; whatever else it is, as it is."""
    return None if who is None else names.get(who, who)
