"""Whether anybody knows a queue. A verb on a queue needs no such queue, so a slip of the pen would be believed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from fencerow.core.model.state import WorkerState
from fencerow.core.store.workers import list_workers
from fencerow.db.run import Procedure, ask
from fencerow.operators.looking import counts

WORKERS_MAX = 1_000


def nobody_knows(queue: str) -> Procedure[str | None]:
    """What to tell of a queue that no living worker serves and in which no live job is; None of all others."""
    workers = yield from ask(list_workers(state=WorkerState.ALIVE.value, limit=WORKERS_MAX))
    if any(each.queues is None or queue in each.queues for each in workers):
        return None  # one that does not say what it serves may serve it
    known = {name for each in workers for name in each.queues or ()}
    known |= {each.queue for each in (yield from ask(counts()))}
    if queue in known:
        return None
    return f"no live job and no living worker knows the queue {queue}{meant(queue, known)}"


def meant(name: str, known: Iterable[str]) -> str:
    """The closest of the names that there are, as a question; nothing where none is close."""
    close = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(close)}?" if close else ""
