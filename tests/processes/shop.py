"""An application whose jobs run in child processes, as a user would declare it. Imported by the children too."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import ctypes
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from fencerow import App, Job, contract
from fencerow.batches import BatchItem

RUNAWAY = Path(__file__).with_name("runaway.py")
MEMORY_BYTES_MAX = 400 * 1024**2
log = logging.getLogger("shop")
app = App("sqlite:///unused.db")  # a worker of the tests brings its own database
tone = contextvars.ContextVar("tone", default="none")


@app.on_run
async def set_tone(job: Job, call_next: Callable[[], Awaitable[Any]]) -> Any:
    tone.set(f"middleware of {os.getpid()}")
    return await call_next()


@app.job(process=True)
def where(job: Job) -> dict[str, Any]:
    return {"pid": os.getpid(), "parent": os.getppid(), "attempt": job.attempt, "tone": tone.get()}


@app.job(process=True)
async def awhere(job: Job, text: str) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {"pid": os.getpid(), "text": text, "metadata": dict(job.metadata), "tone": tone.get()}


@contract(name="agreed")
def agreed(text: str) -> list[Any]:  # type: ignore[empty-body]  # a contract has none
    ...


@app.handles(agreed, process=True)
def run_agreed(text: str) -> list[Any]:
    return [text, os.getpid()]


@app.job(process=True)
def says(job: Job) -> None:
    job.progress(40, "less than half")
    job.log("from the child")
    log.warning("a line of the child", extra={"color": "red"})
    try:
        raise ValueError("seen")
    except ValueError:
        log.exception("with a trace")


@app.job(process=True)
def follows(job: Job, inside: bool) -> str:
    following = awhere.using(queue="mail", key="k", unique="u", exclusive="e").call("next")
    if not inside:
        return job.submit_next(following)
    with job.transaction():
        return job.submit_next(following)


@app.job(process=True)
def effect(job: Job, sql: str) -> str:
    with job.transaction() as connection:
        connection.execute(sql)
        job.progress(50)
    return "booked"


@app.job(process=True)
async def aeffect(job: Job, sql: str) -> str:
    async with job.transaction() as connection:
        done = connection.execute(sql)
        if asyncio.iscoroutine(done):
            await done
    return "booked"


@app.job(process=True)
def effect_then_dies(job: Job, sql: str) -> None:
    """Dies after the commit and before it tells: the success counts."""
    with job.transaction() as connection:
        connection.execute(sql)
    from fencerow.core.worker.transaction import JobTransaction

    commit = JobTransaction.commit

    def commit_and_die(self: JobTransaction[Any], result: str) -> None:
        commit(self, result)
        os.kill(os.getpid(), signal.SIGKILL)

    JobTransaction.commit = commit_and_die  # type: ignore[method-assign]


@app.job(process=True)
def raises(job: Job, what: str) -> None:
    raise {"value": ValueError, "os": OSError}[what]("no")


# --- what takes its process down -----------------------------------------------------------------------


def pids_into(folder: str, pid: int) -> None:
    with Path(folder, "pids").open("a") as file:
        file.write(f"{pid}\n")


def overflow() -> None:
    """Recurse below the interpreter, whose own limit does not see it."""
    again: list[Any] = []
    again.append(ctypes.CFUNCTYPE(None)(lambda: again[0]()))
    sys.setrecursionlimit(10**9)
    again[0]()


def poison(kind: str, folder: str) -> None:
    pids_into(folder, os.getpid())
    match kind:
        case "sigkill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "sigsegv":
            ctypes.string_at(0)
        case "exit":
            os._exit(3)
        case "memory":
            hoard = [b"x" * 2**24 for _ in range(10_000)]
            del hoard
        case "stdout":
            os.closerange(0, 3)
        case "descriptors":
            os.closerange(0, 256)
            time.sleep(60)
        case "abort":
            ctypes.CDLL(None).abort()
        case "stack":
            overflow()
        case "warden":
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
        case "worker":
            told = subprocess.check_output(["ps", "-o", "ppid=", "-p", str(os.getppid())])
            os.kill(int(told), signal.SIGKILL)
            time.sleep(60)
        case "hang":
            while True:
                with contextlib.suppress(BaseException):
                    time.sleep(0.05)
        case _:
            raise ValueError(kind)


@app.job(process=True, memory_bytes_max=MEMORY_BYTES_MAX)
def poisonous(kind: str, folder: str) -> None:
    poison(kind, folder)


@app.job(process=True)
async def apoisonous(kind: str, folder: str) -> None:
    poison(kind, folder)


@app.job
def ordinary(kind: str, folder: str) -> None:
    """Not declared for a child: its first death takes the worker along."""
    poison(kind, folder)


@app.job
async def aordinary(kind: str, folder: str) -> None:
    poison(kind, folder)


@app.on_batch
async def set_tone_of_batch(
    items: Sequence[BatchItem[Any, Any]], call_next: Callable[[], Awaitable[None]]
) -> None:
    tone.set(f"batch middleware of {os.getpid()}")
    await call_next()


@app.batch_job(batch_max=10)
def tell_tone(items: Sequence[BatchItem[None, list[Any]]]) -> None:
    for item in items:
        item.succeed([os.getpid(), tone.get()])


@app.batch_job(batch_max=10)
def batch(items: Sequence[BatchItem[str, None]]) -> None:
    for item in items:
        poison("sigkill", item.value)


@app.job(process=True)
def leaves_a_grandchild(folder: str, dies: bool) -> int:
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    pids_into(folder, os.getpid())
    pids_into(folder, left.pid)
    if dies:
        os._exit(0)
    return left.pid


@app.job(process=True, memory_bytes_max=MEMORY_BYTES_MAX)
def lets_one_run_away(folder: str, how: str, end: str) -> None:
    """Ends in its own way when the program that it has started has got away."""
    started = subprocess.Popen([sys.executable, str(RUNAWAY), folder, how])
    if how != "setsid":
        started.wait()  # what goes on is nobody's child
    while not Path(folder, "pids").exists():
        time.sleep(0.01)
    if end != "returns":
        poison(end, folder)


@app.job(process=True)
def waits(folder: str) -> int:
    """Tells its number and its warden's, and waits to be let go."""
    pids_into(folder, os.getpid())
    pids_into(folder, os.getppid())
    while not Path(folder, "go").exists():
        time.sleep(0.01)
    return os.getpid()


@app.job(process=True)
def hangs(job: Job, folder: str, how: str) -> str:
    """Ignores whatever it is asked."""
    signal_ignored = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    pids_into(folder, os.getpid())
    pids_into(folder, signal_ignored.pid)
    while True:
        try:
            if how == "obeys":
                job.wait_cancelled(600)
                job.raise_if_cancelled()
            time.sleep(0.05)
        except BaseException:
            if how == "obeys":
                raise


@app.job(process=True)
def holds(job: Job) -> None:
    """Keeps a transaction open for longer than SQLite's other writers can wait."""
    with job.transaction() as connection:
        connection.execute("INSERT INTO effect VALUES (1)")
        for _ in range(600):
            time.sleep(0.05)


@app.job
async def healthy(job: Job) -> int:
    await asyncio.sleep(0.02)
    return job.attempt


@app.job
def suspected(job: Job) -> int:
    """Where it runs tells whether it was a suspect."""
    return os.getpid()


@app.job
def meets(job: Job, folder: str, count: int) -> int:
    """Waits until so many are here at once."""
    Path(folder, f"met-{os.getpid()}").touch()
    while len(list(Path(folder).glob("met-*"))) < count:
        time.sleep(0.01)
    return os.getpid()
