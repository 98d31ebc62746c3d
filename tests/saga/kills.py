"""Orders whose worker dies by SIGKILL at each place of an order and of its compensation; another worker goes on.

python -m tests.saga.kills [postgres|sqlite]
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from fencerow import App, Fail, Job
from fencerow.config import Config
from fencerow.saga.storing import SagaRecord, sagas_of
from tests.kit.forking import context
from tests.kit.pace import PATIENCE_S, slower

ORDER = ("order begins", "charging", "charged", "packing", "packed", "order fails")
UNDO = ("undo begins", "unpacking", "unpacked", "refunding", "refunded", "undo ends")
PLACES = (*ORDER, *UNDO)
# Behind an effect, and before its memory: who dies there leaves it to be done once more.
EFFECTS = ("charged", "packed", "unpacked", "refunded")
BUDGET: Any = {"attempts_max": 100, "crashes_max": 100}


def shop_at(url: str, folder: Path) -> App:
    """An app whose orders fail once they have charged and packed. What is done stands in a file of the order."""
    pace: Any = {"lease_s": slower(2.0), "renew_s": slower(0.3), "sweep_s": 0.2}
    app = App(url, config=Config(**pace, poll_max_s=0.2, poll_min_s=0.01))

    def at(word: str, place: str) -> str:
        """Die here if the order says so, and nobody did before."""
        if place in EFFECTS:
            with (folder / word).open("a") as done:
                done.write(f"{place}\n")
        if place == word:
            try:
                (folder / f"{word}, died").touch(exist_ok=False)
            except FileExistsError:
                return word
            os.kill(os.getpid(), signal.SIGKILL)
        return word

    def charge(word: str) -> str:
        return at(at(word, "charging"), "charged")

    def pack(word: str) -> str:
        return at(at(word, "packing"), "packed")

    def unpack(word: str) -> None:
        at(at(word, "unpacking"), "unpacked")

    def refund(word: str) -> None:
        at(at(word, "refunding"), "refunded")

    @app.job(**BUDGET)
    def order(job: Job, word: str) -> None:
        job.step("charge", charge, word, undo=refund)
        job.step("pack", pack, word, undo=unpack)
        raise Fail("out of stock")

    app.saga(order, undo=[refund, unpack], **BUDGET)

    @app.on_run
    async def dying(job: Job, call_next: Callable[[], Awaitable[Any]]) -> Any:
        word = job.tags[0]  # which the compensation has from its order
        begins, ends = (
            ("order begins", "order fails") if job.name == "order" else ("undo begins", "undo ends")
        )
        at(word, begins)
        try:
            return await call_next()
        finally:
            at(word, ends)

    return app


def work(url: str, folder: Path) -> None:
    """Run a worker until this process is killed."""
    asyncio.run(shop_at(url, folder).worker(slots=1).run())


def play(url: str, folder: Path) -> list[str]:
    """Each place once, on a migrated database; returns what was wrong."""
    wrong: list[str] = []
    with shop_at(url, folder) as app:
        for place in PLACES:
            handle = app.jobs["order"].using(tags=[place]).submit(place)
            first = context.Process(target=work, args=(url, folder), daemon=True)
            first.start()
            first.join(PATIENCE_S)
            if first.exitcode != -signal.SIGKILL:
                wrong.append(f"{place}: the worker did not die there, it ended with {first.exitcode}")
                first.kill()
            second = context.Process(target=work, args=(url, folder), daemon=True)
            second.start()
            try:
                failed = app.client.wait_ended(handle.id, PATIENCE_S)
                sagas = app.engine.run(sagas_of(handle.id))
                undone = [app.client.wait_ended(each.undo_id, PATIENCE_S).state for each in sagas]
            finally:
                second.kill()
                second.join()
            wrong += [f"{place}: {each}" for each in judged(place, str(failed.state), sagas, undone, folder)]
    return wrong


def judged(place: str, state: str, sagas: list[SagaRecord], undone: list[Any], folder: Path) -> list[str]:
    """What became of an order, against what was promised."""
    done = (folder / place).read_text().split()
    twice = {place: 2} if place in EFFECTS else {}
    wrong = [] if state == "failed" else [f"the order is {state}"]
    if [str(each) for each in undone] != ["succeeded"] or [each.steps for each in sagas] != [2]:
        wrong.append(f"its compensations are {undone}, of {sagas}")
    if Counter(done) != Counter({**dict.fromkeys(EFFECTS, 1), **twice}):
        wrong.append(f"done: {done}")
    if sorted(done, key=EFFECTS.index) != done:
        wrong.append(f"done in another order: {done}")
    return wrong
