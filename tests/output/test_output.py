"""What jobs emit: in order, bounded, under the fence, and read by offset, now or while it comes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from fencerow import App, Client, Config, Job
from fencerow.batches import BatchItem
from fencerow.core.model.job import JobRecord
from fencerow.core.store import store
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import (
    ChunkRefused,
    InvalidInput,
    JobNotFound,
    NotInBatch,
    OutputNotPossible,
    OutputSpent,
    PayloadAltered,
    ResultTimeout,
    SealKeyUnknown,
)
from fencerow.output import Chunk, storing
from fencerow.output.model import ChunkGroup, offset_of
from fencerow.payloads import Seal
from fencerow.testing.clock import DatabaseClock
from tests.core.worker.stage import quick, working
from tests.kit.jobs import AnyEngine, claim, register, running
from tests.kit.pace import PATIENCE_S
from tests.output import shop
from tests.payloads.conftest import K1, MARKS
from tests.processes.conftest import settings

NEVER_S = 10.0  # between two writes: longer than any of these handlers runs


async def read(engine: AnyEngine, job_id: str, **how: Any) -> list[Chunk]:
    return [chunk async for chunk in Client(engine).aoutput(job_id, follow=False, **how)]


def groups(engine: AnyEngine, job_id: str) -> list[ChunkGroup]:
    found = engine.run(storing.read_output(job_id, 0, limit=10))
    assert found is not None
    return found.groups


def data(chunks: Sequence[Chunk]) -> list[Any]:
    return [chunk.data for chunk in chunks]


async def test_all_kinds_of_chunks_come_back_in_order(engine: AnyEngine) -> None:
    said = ["", "é \u2028", b"\x00\xff", {"bytes": "AA=="}, [1, None], "last"]

    async def tells(job: Job) -> None:
        for each in said:
            await job.emit(each)

    async with working(engine, tells) as stage:
        job = await stage.run("tells")

    found = await read(engine, job.id)
    assert data(found) == said
    assert [chunk.offset for chunk in found] == [offset_of(1, number) for number in range(1, 7)]
    assert data(await read(engine, job.id, after=found[2].offset)) == said[3:]
    assert await read(engine, job.id, after=found[-1].offset) == []


async def test_a_plain_handler_emits_in_order_from_all_its_threads(engine: AnyEngine) -> None:
    def tells(job: Job) -> None:
        for number in range(20):
            thread = threading.Thread(target=job.emit, args=(number,))
            thread.start()
            thread.join()

    async with working(engine, tells) as stage:
        job = await stage.run("tells")

    assert data(await read(engine, job.id)) == list(range(20))


async def test_many_small_chunks_are_few_rows(engine: AnyEngine) -> None:
    async def tells(job: Job) -> None:
        for _ in range(1_200):
            await job.emit("token ")

    async with working(engine, tells, config=quick(output_write_s=NEVER_S)) as stage:
        job = await stage.run("tells")

    assert len(await read(engine, job.id)) == 1_200
    # The first by itself, then two of 500, then the rest.
    assert [each.chunks for each in groups(engine, job.id)] == [1, 500, 500, 199]


async def test_a_later_attempt_begins_a_new_part(engine: AnyEngine) -> None:
    async def tells(job: Job) -> None:
        await job.emit("begun")
        await job.emit(job.attempt)
        if job.attempt == 1:
            raise RuntimeError("it fails behind its second chunk")

    async with working(engine, tells, config=quick(output_write_s=NEVER_S)) as stage:
        job = await stage.run("tells", attempts_max=2)

    found = await read(engine, job.id)
    assert [(chunk.attempt, chunk.data) for chunk in found] == [(1, "begun"), (1, 1), (2, "begun"), (2, 2)]
    assert [chunk.offset for chunk in found] == sorted(chunk.offset for chunk in found)


async def test_a_stale_attempt_emits_nothing(engine: AnyEngine) -> None:
    claimed = running(engine, stale := register(engine))
    back = store.Requeue(id=claimed.id, attempt=1, kind="released")
    assert engine.run(store.requeue([back], holder=stale))
    (newer,) = claim(engine, holder := register(engine))
    assert (newer.id, newer.attempt) == (claimed.id, 2)

    old = ChunkGroup(last=offset_of(1, 1), attempt=1, chunks=1, data='["old"]')
    new = ChunkGroup(last=offset_of(2, 1), attempt=2, chunks=1, data='["new"]')

    assert not engine.run(storing.write(claimed.id, old, holder=stale))
    assert engine.run(storing.begin(claimed.id, holder=stale, attempt=1)) is None
    assert engine.run(storing.write(claimed.id, new, holder=holder))
    assert engine.run(storing.write(claimed.id, new, holder=holder)), "a repeated write is no loss"
    assert data(await read(engine, claimed.id)) == ["new"]


async def test_who_follows_gets_each_chunk_while_the_job_runs_and_then_its_end(engine: AnyEngine) -> None:
    heard, client = asyncio.Event(), Client(engine)

    async def tells(job: Job) -> None:
        await job.emit("first")
        await heard.wait()  # without the reader it does not go on
        await job.emit("second")
        await job.emit("third")

    async with working(engine, tells) as stage:
        job_id = await stage.submit("tells")
        found = []
        async for chunk in client.aoutput(job_id, timeout_s=PATIENCE_S):
            found.append(chunk.data)
            heard.set()
        assert (await client.aget(job_id)).state == "succeeded"

    assert found == ["first", "second", "third"]
    assert data(list(await asyncio.to_thread(lambda: list(client.output(job_id))))) == found


async def test_what_is_emitted_before_a_transaction_is_there_with_its_commit(engine: AnyEngine) -> None:
    refused: list[str] = []

    async def atells(job: Job) -> None:
        await job.emit("first")
        await job.emit("second")
        async with job.transaction():
            try:
                await job.emit("inside")
            except OutputNotPossible as error:
                refused.append(error.code)

    def tells(job: Job) -> None:
        job.emit("first")
        job.emit("second")
        with job.transaction():
            pass

    async with working(engine, atells, tells, config=quick(output_write_s=NEVER_S)) as stage:
        for name in ("atells", "tells"):
            job = await stage.run(name)
            assert job.state == "succeeded", job.error
            assert data(await read(engine, job.id)) == ["first", "second"]
    assert refused == ["FR-966"]


async def test_a_write_that_waits_for_the_jobs_own_transaction_does_not_keep_it(lite: AnyEngine) -> None:
    """On SQLite a timed write cannot begin before the job's transaction has ended, which waits for the output."""
    opened, tried = asyncio.Event(), asyncio.Event()
    arun = lite.arun

    async def slowly(operation: Any) -> Any:
        if operation.name == "write" and "second" in str(operation.start):
            tried.set()
            await opened.wait()
        return await arun(operation)

    lite.arun = slowly  # type: ignore[method-assign]

    async def tells(job: Job) -> None:
        await job.emit("first")
        await job.emit("second")
        await tried.wait()
        async with job.transaction():
            opened.set()

    async with working(lite, tells, config=quick(output_write_s=0.01)) as stage:
        job = await stage.run("tells")

    assert job.state == "succeeded", job.error
    assert data(await read(lite, job.id)) == ["first", "second"]


async def test_a_write_whose_caller_was_cancelled_comes_before_the_next_one(lite: AnyEngine) -> None:
    """Else it would be lost, or a reader see the later group first and never look for the earlier one."""
    began, never = asyncio.Event(), asyncio.Event()
    arun = lite.arun

    async def slowly(operation: Any) -> Any:
        if operation.name == "write" and "second" in str(operation.start) and not began.is_set():
            began.set()
            await never.wait()
        return await arun(operation)

    lite.arun = slowly  # type: ignore[method-assign]

    async def tells(job: Job) -> None:
        await job.emit("first")
        writing = asyncio.ensure_future(job.emit("second" + "x" * 70_000))
        await began.wait()
        writing.cancel()
        await asyncio.wait([writing])
        await job.emit("third")

    config = quick(output_write_s=NEVER_S, output_chunk_bytes_max=100_000)
    async with working(lite, tells, config=config) as stage:
        job = await stage.run("tells")

    assert job.state == "succeeded", job.error
    assert [str(each)[:5] for each in data(await read(lite, job.id))] == ["first", "secon", "third"]


async def refusal(engine: AnyEngine, emits: Any, **settings: Any) -> JobRecord:
    async def tells(job: Job) -> None:
        await emits(job)

    submit = {"ephemeral": settings.pop("ephemeral")} if "ephemeral" in settings else {}
    async with working(engine, tells, config=quick(**settings)) as stage:
        return await stage.run("tells", attempts_max=3, **submit)


async def many(job: Job) -> None:
    for _ in range(20):
        await job.emit("x" * 100)


@pytest.mark.parametrize(
    ("emits", "settings", "code", "kept"),
    [
        (lambda job: job.emit("x" * 1_100), {"output_chunk_bytes_max": 1_024}, ChunkRefused.code, 0),
        (lambda job: job.emit(object()), {}, ChunkRefused.code, 0),
        (lambda job: job.emit(float("nan")), {}, ChunkRefused.code, 0),
        (lambda job: job.emit("\ud800"), {}, ChunkRefused.code, 0),
        (many, {"output_chunks_max": 7}, OutputSpent.code, 7),
        (many, {"output_bytes_max": 1_024}, OutputSpent.code, 10),
        (lambda job: job.emit("x"), {"ephemeral": True}, OutputNotPossible.code, 0),
    ],
)
async def test_what_cannot_be_kept_is_refused_with_a_code(
    engine: AnyEngine, emits: Any, settings: dict[str, Any], code: str, kept: int
) -> None:
    job = await refusal(engine, emits, **settings)

    assert (job.state, job.failures) == ("failed", 1)
    assert job.error is not None and code in job.error["message"]
    assert len(await read(engine, job.id)) == kept


async def test_the_bounds_are_those_of_all_attempts_together(engine: AnyEngine) -> None:
    async def tells(job: Job) -> None:
        for _ in range(5):
            await job.emit("x")
        if job.attempt < 3:
            raise RuntimeError("again")

    async with working(engine, tells, config=quick(output_chunks_max=7)) as stage:
        job = await stage.run("tells", attempts_max=3)

    assert (job.state, job.attempt) == ("failed", 2)
    assert len(await read(engine, job.id)) <= 7


async def test_nothing_is_taken_when_the_handler_has_ended(engine: AnyEngine) -> None:
    left: list[Job] = []

    async def tells(job: Job) -> None:
        await job.emit("in time")
        left.append(job)

    async with working(engine, tells) as stage:
        job = await stage.run("tells")
        with pytest.raises(OutputNotPossible, match="has ended"):
            left[0].emit("late")

    assert data(await read(engine, job.id)) == ["in time"]


async def test_a_batch_handler_has_neither_steps_nor_output(lite: SqliteEngine) -> None:
    codes: list[str] = []
    async with App(f"sqlite:///{lite.path}", config=quick()) as app:

        @app.batch_job
        def many(items: Sequence[BatchItem[int, None]]) -> None:
            with pytest.raises(NotInBatch) as error:
                items[0].step("a", print)
            codes.append(error.value.code)
            with pytest.raises(NotInBatch) as error:
                items[0].emit("x")
            codes.append(error.value.code)

        async with app.worker():
            await (await many.asubmit(1)).aresult(PATIENCE_S)
    assert codes == ["FR-969", "FR-969"]


async def test_a_child_process_emits(lite: AnyEngine) -> None:
    async with working(lite, shop.tells.handler, config=settings(lite)) as stage:
        job = await stage.run("tells")

    assert (job.result, data(await read(lite, job.id))) == (3, ["0", "1", "2"])


async def test_the_output_of_a_job_that_seals_is_sealed(lite: SqliteEngine) -> None:
    url, config = f"sqlite:///{lite.path}", quick()
    async with App(url, config=config, seal=Seal({"k1": K1}, marks=MARKS)) as app:

        @app.job
        async def tells(job: Job) -> None:
            await job.emit("secret")
            await job.emit("secret 2")

        async with app.worker():
            handle = await tells.asubmit()
            await handle.aresult(PATIENCE_S)
        found = [chunk.data async for chunk in app.client.aoutput(handle.id)]
        assert found == ["secret", "secret 2"]
        kept = groups(lite, handle.id)
        assert kept and all("secret" not in each.data for each in kept)
        with pytest.raises(SealKeyUnknown):
            await read(lite, handle.id)
        # Moved to another place it is noticed.
        with lite.session() as session:
            session.connection.execute("UPDATE fencerow_job_output SET last = last + 5")
        with pytest.raises(PayloadAltered):
            [chunk async for chunk in app.client.aoutput(handle.id)]


async def test_it_is_kept_for_a_while_after_the_end(engine: AnyEngine, clock: DatabaseClock) -> None:
    done = asyncio.Event()

    async def tells(job: Job) -> None:
        await job.emit("x")

    async def waits(job: Job) -> None:
        await job.emit("y")
        await done.wait()

    async with working(engine, tells, waits) as stage:
        ended = await stage.run("tells")
        live = await stage.submit("waits")
        await anext(Client(engine).aoutput(live, timeout_s=PATIENCE_S))

        def gone() -> int:
            return engine.run(storing.purge(storing.NOWHERE, age_s=3600.0, limit=10)).gone

        assert await asyncio.to_thread(gone) == 0
        clock.advance(3601)
        assert await asyncio.to_thread(gone) == 1
        assert (await read(engine, ended.id), data(await read(engine, live))) == ([], ["y"])
        done.set()
        await stage.ended(live)


async def test_bad_readers_are_told(engine: AnyEngine) -> None:
    client, claimed = Client(engine), running(engine)

    with pytest.raises(JobNotFound):
        await read(engine, "0198c5a0-0000-7000-8000-000000000000")
    for after in (-1, 2**70, "1", True):
        with pytest.raises(InvalidInput):
            client.aoutput(claimed.id, after=after)  # type: ignore[arg-type]
    with pytest.raises(ResultTimeout):
        [chunk async for chunk in client.aoutput(claimed.id, timeout_s=0)]
    assert Config().output_chunk_bytes_max == 65_536


def test_a_job_that_emits_on_and_on_keeps_no_reader_beyond_its_time(engine: AnyEngine) -> None:
    claimed = running(engine, holder := register(engine))

    def emit(number: int) -> None:
        last = offset_of(claimed.attempt, number)
        group = ChunkGroup(last=last, attempt=claimed.attempt, chunks=1, data='["x"]')
        assert engine.run(storing.write(claimed.id, group, holder=holder))

    emit(1)
    reader = iter(Client(engine).output(claimed.id, timeout_s=0))
    assert next(reader).data == "x"
    emit(2)
    with pytest.raises(ResultTimeout):
        next(reader)
