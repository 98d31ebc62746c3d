"""What a user's type checker knows of declared jobs; see test_typing.py.

Each "type: ignore" stands where a checker must complain: an ignore without need is an error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, assert_type

from fencerow import App, Handle, Job, contract
from fencerow.batches import BatchItem
from fencerow.client import CancelAnswer
from fencerow.core.model.job import JobRecord
from fencerow.core.model.worker import WorkerRecord

app = App("sqlite:///never-opened.db")


@app.job
def bare(n: int, note: str = "") -> list[int]:
    return [n]


@app.job(queue="a", attempts_max=3)
def with_options(n: int) -> int:
    return n


@app.job
def with_job(job: Job, n: int) -> float:
    return n / 2


@app.job
async def asynchronous(path: str) -> dict[str, int]:
    return {path: 1}


@app.job(timeout_s=5)
async def asynchronous_with_job(job: Job, path: str) -> bytes:
    return path.encode()


@dataclass
class Mail:
    to: str


@app.batch_job(batch_max=50, queue="mail", timeout_s=60)
async def send(items: Sequence[BatchItem[Mail, str]]) -> None:
    for item in items:
        assert_type(item.value, Mail)
        item.succeed(item.value.to)


@app.on_batch
async def logged(items: Sequence[BatchItem[Any, Any]], call_next: Callable[[], Awaitable[None]]) -> None:
    assert_type(items[0].name, str)
    await call_next()


@app.on_batch  # type: ignore[arg-type]  # an async function is expected
def logged_plainly(
    items: Sequence[BatchItem[Any, Any]], call_next: Callable[[], Awaitable[None]]
) -> None: ...


@app.batch_job
def send_plain(items: Sequence[BatchItem[int, None]]) -> None:
    items[0].succeed(None)


async def right(job: Job) -> None:
    assert_type(app.declare(reading).submit("a", pages=2), Handle[list[str]])
    assert_type(await app.declare(reading_async).asubmit("a"), Handle[int])
    assert_type(bare.submit(1, note="a"), Handle[list[int]])
    assert_type(await bare.asubmit(1), Handle[list[int]])
    assert_type(bare(1), list[int])
    assert_type(with_options.submit(n=1).result(), int)
    assert_type(with_job.submit(1), Handle[float])
    assert_type(with_job(job, 1), float)
    assert_type(bare.using(handover="k", priority=3).submit(1), Handle[list[int]])
    assert_type(await asynchronous.using(key="k").asubmit("a"), Handle[dict[str, int]])
    await assert_type(asynchronous("a"), Coroutine[Any, Any, dict[str, int]])
    assert_type(await (await asynchronous_with_job.asubmit("a")).aresult(), bytes)
    assert_type(await asynchronous_with_job(job, "a"), bytes)
    assert_type(await bare.asubmit_many(bare.call(n) for n in range(3)), list[Handle[list[int]]])
    assert_type(app.submit_many([with_options.using(key="k").call(1)]), list[Handle[int]])

    assert_type(send.submit(Mail("ada")), Handle[str])
    assert_type(await send.using(key="k").asubmit(Mail("ada")), Handle[str])
    assert_type(send_plain.submit(1), Handle[None])
    assert_type(send.submit_many([send.call(Mail("ada"))]), list[Handle[str]])


async def verbs(handle: Handle[int]) -> None:
    """A verb and its twin are made from one procedure: both have its parameters, and return what it returns."""
    assert_type(app.client.get("id").attempt, int)
    assert_type(await app.client.aget("id"), JobRecord)
    assert_type(app.client.list_jobs(limit=3), list[JobRecord])
    assert_type(await app.client.alist_jobs(limit=3), list[JobRecord])
    assert_type(handle.cancel(reason="late"), CancelAnswer)
    assert_type(await handle.acancel(reason="late"), CancelAnswer)
    assert_type(await app.client.workers.afind("mail-*"), Sequence[WorkerRecord])

    app.client.get(3)  # type: ignore[arg-type]  # an id or a key is expected
    await app.client.aget(3)  # type: ignore[arg-type]
    app.client.list_jobs(limits=3)  # type: ignore[call-arg]  # no such parameter
    await app.client.alist_jobs(limits=3)  # type: ignore[call-arg]
    handle.cancel("late")  # type: ignore[call-arg]  # the reason is named
    await handle.acancel("late")  # type: ignore[call-arg]


def wrong(job: Job) -> None:
    bare.submit("1")  # type: ignore[arg-type]  # an int is expected
    bare.submit()  # type: ignore[call-arg]  # n is missing
    bare.submit(1, nots="a")  # type: ignore[call-arg]  # no such parameter
    with_options.using(key="k").submit(None)  # type: ignore[arg-type]  # an int is expected
    with_job.submit(job, 1)  # type: ignore[call-arg, arg-type]  # the job is not submitted
    with_job(1)  # type: ignore[call-arg, arg-type]  # the function wants its job
    asynchronous_with_job.submit(1)  # type: ignore[arg-type]  # a str is expected
    asynchronous.call(1)  # type: ignore[arg-type]  # a str is expected
    bare.using(kye="k")  # type: ignore[call-arg]  # no such option
    bare.using(handover=3)  # type: ignore[arg-type]  # a text, a function or HandoverTo is expected
    app.job(handover=3)  # type: ignore[call-overload]  # the same where it is declared
    bare.submit_many([asynchronous.call("a")])  # type: ignore[list-item]  # calls of another result
    send.submit("ada")  # type: ignore[arg-type]  # a Mail is expected
    send.submit(Mail("ada"), Mail("bob"))  # type: ignore[call-arg]  # one value
    send_plain.submit("1")  # type: ignore[arg-type]  # an int is expected
    app.batch_job(batch_size=3)  # type: ignore[call-overload]  # no such option


def wrong_results(items: Sequence[BatchItem[Mail, str]]) -> None:
    items[0].succeed(3)  # type: ignore[arg-type]  # a str is expected
    items[0].fail(3)  # type: ignore[arg-type]  # a text or an error is expected


@contract(queue="documents")
def reading(path: str, pages: int = 1) -> list[str]:
    raise NotImplementedError


@contract
async def reading_async(path: str) -> int:
    raise NotImplementedError


@app.handles(reading)
async def read(job: Job, path: str, pages: int = 1) -> list[str]:
    return [path]


@app.handles(reading_async)
def read_plain(path: str) -> int:
    return 1


@app.handles(reading_async)  # type: ignore[arg-type]  # the contract says str
def read_wrong(path: int) -> int:
    return 1
