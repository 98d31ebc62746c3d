"""Short ways to flows: an app whose jobs do what their argument says, and a worker in one process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fencerow import App, Job
from fencerow.core.store import store
from fencerow.core.store.attempts import Failure, Success
from fencerow.flows import Flow, FlowHandle
from fencerow.flows.waking import Advanced, advance
from fencerow.testing import drain
from tests.events.conftest import app_on
from tests.kit import jobs
from tests.kit.jobs import AnyEngine


class Shop:
    """An app on the engine's database: `say` returns its word, `fail` fails for good, `heard` is what ran, in order."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.heard: list[str] = []

        @app.job(attempts_max=1)
        def say(word: str) -> str:
            self.heard.append(word)
            return word

        @app.job(attempts_max=1)
        def fail(word: str) -> str:
            self.heard.append(word)
            raise ValueError(word)

        @app.job(attempts_max=1)
        async def join(job: Job) -> str:
            inputs = await app.flows.ainputs(job.id)
            words = await inputs.aresults(say)
            states = [f"{name} {each.state}" for name, each in inputs.items() if name not in words]
            self.heard.append("join")
            return " ".join([*words.values(), *states])

        self.say, self.fail, self.join = say, fail, join

    def flow(self, name: str = "f", *, key: str | None = None) -> Flow:
        return self.app.flow(name, key=key)

    def run(self, handle: FlowHandle | None = None) -> dict[str, str]:
        """Run all that is due; the states of the flow's jobs by their names."""
        drain(self.app)
        return {} if handle is None else {each.name: each.state.value for each in handle.jobs()}


@pytest.fixture
def shop(engine: AnyEngine) -> Iterator[Shop]:
    with app_on(engine) as app:
        yield Shop(app)


def advanced(engine: AnyEngine) -> list[Advanced]:
    """Tell all ends that are to be told; returns what each transaction did."""
    found = [engine.run(advance(actor=None))]
    while found[-1].more:
        found.append(engine.run(advance(actor=None)))
    return found


def end(engine: AnyEngine, *ids: str, fail: bool = False) -> None:
    """End these jobs of the shop, which are queued."""
    holder = jobs.register(engine)
    known = {
        each.id: each.attempt
        for each in jobs.claim(engine, holder, queue="default", names=("say", "fail", "join"), limit=100)
    }
    for each in ids:
        attempt = known.pop(each)
        if fail:
            assert engine.run(
                store.fail([Failure(each, attempt, '{"type":"E","message":"m"}')], holder=holder)
            )
        else:
            assert engine.run(store.succeed([Success(each, attempt, '"done"')], holder=holder))
    back = [store.Requeue(id=each, attempt=attempt, kind="released") for each, attempt in known.items()]
    if back:
        engine.run(store.requeue(back, holder=holder))
