"""What a submit costs on SQLite, alone and among 100 at once, rung by rung, from a bare INSERT up to ours.

    python bench/submit_floor.py [rounds] [submits] [folder] [--save FILE]

Every rung adds one thing to the one before it, and all stand beside each other in blocks that take turns, each on a
file of its own:

- *three columns, never synced*: one INSERT of three columns in the caller's thread, in the journal mode `wal` and
  without a single sync. What Huey does by default.
- *our row, never synced*: the same with the row that a submit of ours writes, in our table with its indexes.
- *our row*: with our durability (`synchronous = FULL`).
- *behind an event loop*: that in one thread of an executor, awaited one after the other: nobody's event loop waits for
  a disk.
- *submit*, *asubmit*: ours, from a thread and from an event loop.
- *100 rows together*: our row for 100 callers at once, by the statement that `asubmit` shares between them, in the
  caller's thread: with new ids, and the document that they travel in.
- *for 100 callers*: that in one thread of an executor. 100 callers of an event loop wait for a future each, and nothing
  of theirs is looked at.
- *100 callers*: `asubmit` of 100 callers at once.

All but the first two in the journal that an unsafe library must use (`truncate`) and in the one that a safe one uses
(`wal`). Told are microseconds by the clock and of the processor for each submit, the median of the rounds, and the
ratio to the bare row, or to the 100 together, in the same round and journal. In a folder in memory syncs cost nothing,
so only the work counts.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

from fencerow import App, Config
from fencerow.bench.evidence import keep
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import NewJob, Template
from fencerow.core.store import store
from fencerow.core.store.connect import open_engine
from fencerow.core.store.submit import as_document, as_parameters
from fencerow.db.sqlite import SqliteEngine

ROUNDS, SUBMITS, WARM = 7, 200, 100
ARGS = b'{"number":0}'
JOURNALS = ("truncate", "wal")
CALLERS = 100
TOGETHER = f"{CALLERS} rows together"
TEMPLATE = Template(queue="default", name="noop", attempts_max=3, crashes_max=3, snoozes_max=48)
THREE = (
    "CREATE TABLE task (id INTEGER PRIMARY KEY, queue TEXT NOT NULL, data BLOB NOT NULL, priority REAL)",
    "CREATE INDEX task_priority ON task (priority DESC, id)",
)

Rung = Callable[[int], None]


class Ladder:
    """The rungs by their names, on files in this folder."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._runner = stack.enter_context(asyncio.Runner())
        self._thread = stack.enter_context(ThreadPoolExecutor(1))

    def rungs(self) -> dict[tuple[str, str], Rung]:
        found: dict[tuple[str, str], Rung] = {
            ("three columns, never synced", "wal"): partial(repeated, self._three_columns()),
            ("our row, never synced", "wal"): partial(repeated, self._our_row("wal", "OFF")),
        }
        for journal in JOURNALS:
            row = self._our_row(journal, "FULL")
            found["our row", journal] = partial(repeated, row)
            found["behind an event loop", journal] = self._awaited(row)
            found["submit", journal], found["asubmit", journal], callers = self._ours(journal)
            together = self._our_row(journal, "FULL", CALLERS)
            found[TOGETHER, journal] = lambda count, insert=together: repeated(insert, count // CALLERS)
            found[f"for {TOGETHER}", journal] = self._awaited_together(together)
            found[f"{CALLERS} callers", journal] = callers
        return found

    def _opened(self, name: str, journal: str, synchronous: str) -> sqlite3.Connection:
        connection = sqlite3.connect(self._folder / name, isolation_level=None, check_same_thread=False)
        self._stack.enter_context(closing(connection))
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        return connection

    def _three_columns(self) -> Callable[[], None]:
        file = self._opened("three.db", "wal", "OFF")
        for text in THREE:
            file.execute(text)
        insert = "INSERT INTO task (queue, data, priority) VALUES (?, ?, ?)"
        return lambda: void(file.execute(insert, ("default", ARGS, 0)))

    def _our_row(self, journal: str, synchronous: str, rows: int = 1) -> Callable[[], None]:
        """The statement of a submit of so many, in autocommit, with nothing of ours around it."""
        name = f"row-{journal}-{synchronous}-{rows}.db"
        with closing(
            open_engine(Config(url=f"sqlite:///{self._folder / name}", journal_mode=journal))
        ) as engine:
            assert isinstance(engine, SqliteEngine)
            store.migrate(engine, actor="bench")
            query = engine.queries["submit_one" if rows == 1 else "submit"]
        file = self._opened(name, journal, synchronous)
        file.create_function(f"{engine.prefix}now", 0, lambda: time.time_ns() // 1000)
        text = query.statements[0]

        def insert() -> None:
            jobs = [NewJob(new_id(), ARGS.decode(), len(ARGS), TEMPLATE) for _ in range(rows)]
            params = as_parameters(jobs[0]) if rows == 1 else {"jobs": as_document(jobs)}
            file.execute(text, {each: params[each] for each in query.parameters})

        return insert

    def _awaited(self, insert: Callable[[], None]) -> Rung:
        async def one_after_the_other(count: int) -> None:
            loop = asyncio.get_running_loop()
            for _ in range(count):
                await loop.run_in_executor(self._thread, insert)

        return lambda count: self._runner.run(one_after_the_other(count))

    def _awaited_together(self, insert: Callable[[], None]) -> Rung:
        waiting: list[asyncio.Future[None]] = []

        async def caller(loop: asyncio.AbstractEventLoop, count: int) -> None:
            for _ in range(count):
                waiting.append(loop.create_future())
                await waiting[-1]

        async def together(count: int) -> None:
            loop = asyncio.get_running_loop()
            callers = [loop.create_task(caller(loop, count // CALLERS)) for _ in range(CALLERS)]
            for _ in range(count // CALLERS):
                await asyncio.sleep(0)  # all of them have come
                await loop.run_in_executor(self._thread, insert)
                for each in waiting:
                    each.set_result(None)
                waiting.clear()
            await asyncio.gather(*callers)

        return lambda count: self._runner.run(together(count))

    def _ours(self, journal: str) -> tuple[Rung, Rung, Rung]:
        app = App(config=Config(url=f"sqlite:///{self._folder / f'ours-{journal}.db'}", journal_mode=journal))
        self._stack.callback(lambda: self._runner.run(app.aclose()))

        @app.job(name="noop")
        async def noop(number: int) -> None: ...

        async def one_after_the_other(count: int) -> None:
            for _ in range(count):
                await noop.asubmit(0)

        async def together(count: int) -> None:
            await asyncio.gather(*(one_after_the_other(count // CALLERS) for _ in range(CALLERS)))

        return (
            partial(repeated, lambda: void(noop.submit(0))),
            lambda count: self._runner.run(one_after_the_other(count)),
            lambda count: self._runner.run(together(count)),
        )


def void(_: object) -> None: ...


def repeated(insert: Callable[[], None], count: int) -> None:
    for _ in range(count):
        insert()


def timed(rung: Rung, count: int) -> tuple[float, float]:
    """Microseconds by the clock and of the processor, for each submit."""
    clock, processor = time.perf_counter(), time.process_time()
    rung(count)
    return (time.perf_counter() - clock) / count * 1e6, (time.process_time() - processor) / count * 1e6


def measured(folder: Path, rounds: int, submits: int) -> list[dict[str, Any]]:
    with ExitStack() as stack:
        rungs = Ladder(folder, stack).rungs()
        for rung in rungs.values():
            rung(WARM)
        found = [{name: timed(rung, submits) for name, rung in rungs.items()} for _ in range(rounds)]
    return [told(name, found) for name in rungs]


def told(name: tuple[str, str], found: list[dict[tuple[str, str], tuple[float, float]]]) -> dict[str, Any]:
    """One line: the medians, and how they stand beside the bare row."""
    rung, journal = name
    floor = (TOGETHER if str(CALLERS) in rung else "our row", journal)
    return {
        "rung": rung,
        "journal": journal,
        "clock_us": round(statistics.median(each[name][0] for each in found), 1),
        "processor_us": round(statistics.median(each[name][1] for each in found), 1),
        "clock_ratio": round(statistics.median(each[name][0] / each[floor][0] for each in found), 2),
        "processor_ratio": round(statistics.median(each[name][1] / each[floor][1] for each in found), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="What does a single submit cost on SQLite?")
    parser.add_argument("rounds", type=int, nargs="?", default=ROUNDS)
    parser.add_argument("submits", type=int, nargs="?", default=SUBMITS)
    parser.add_argument("folder", type=Path, nargs="?", default=Path.cwd())
    parser.add_argument("--save", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix=".fencerow-bench-", dir=asked.folder) as folder:
        lines = measured(Path(folder), asked.rounds, asked.submits)
    for each in lines:
        print(
            f"{each['rung']:30}{each['journal']:10}{each['clock_us']:9,.0f} us{each['processor_us']:9,.0f} us"
            f"{each['clock_ratio']:8.2f}{each['processor_ratio']:8.2f}"
        )
    keep(asked.save, {"rungs": lines})


if __name__ == "__main__":
    main()
