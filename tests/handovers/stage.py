"""Short ways to jobs whose ends are handed over: submitted, ended in every way, taken, confirmed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fencerow import Client
from fencerow.core.store import store
from fencerow.core.store.attempts import Failure, Stop, Success
from fencerow.handovers import Handover, Receiver
from fencerow.handovers.terms import HandoverTerms
from tests.kit import jobs
from tests.kit.jobs import AnyEngine

HOLD_S = 600.0


def receiver(engine: AnyEngine, name: str = "bot") -> Receiver:
    return Client(engine, actor="test").handovers(name)


def line(engine: AnyEngine, count: int = 3, *, key: str = "k", to: str = "bot", **changes: Any) -> list[str]:
    """Submit jobs, one after the other, that stand in one line; returns their ids."""
    terms = HandoverTerms(to, key, changes.pop("hold_s", HOLD_S)).terms
    return [jobs.submit(engine, jobs.new_job(terms=terms, **changes))[0] for _ in range(count)]


def end(engine: AnyEngine, *ids: str, how: str = "succeed") -> None:
    """End these jobs, which are queued or running nowhere, each in its first attempt."""
    if how == "cancel":
        for job_id in ids:
            engine.run(store.cancel(job_id, actor="ada"))
        return
    holder = jobs.register(engine)
    claimed = {each.id: each.attempt for each in jobs.claim(engine, holder, limit=100)}
    for job_id in ids:
        attempt = claimed.pop(job_id)
        if how == "succeed":
            assert engine.run(store.succeed([Success(job_id, attempt, f'{{"n":{attempt}}}')], holder=holder))
        elif how == "fail":
            assert engine.run(store.fail([Failure(job_id, attempt, '{"code":"x"}')], holder=holder))
        else:
            engine.run(store.cancel(job_id, actor="ada"))
            assert engine.run(store.stop([Stop(job_id, attempt, None)], holder=holder))
    release(engine, holder, claimed)


def release(engine: AnyEngine, holder: str, claimed: dict[str, int]) -> None:
    """What was claimed beside them goes back as it was."""
    back = [store.Requeue(id=each, attempt=attempt, kind="released") for each, attempt in claimed.items()]
    if back:
        engine.run(store.requeue(back, holder=holder))


def ids(found: Sequence[Handover]) -> list[str]:
    return [each.job_id for each in found]
