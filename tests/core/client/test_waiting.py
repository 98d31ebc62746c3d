from __future__ import annotations

import asyncio
import errno
import threading
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from fencerow.client import Client
from fencerow.core.client import waiting
from fencerow.core.client.handle import Handle
from fencerow.core.model.describe import ErrorRecord
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import Claimed
from fencerow.core.model.wakeup import encode_ended
from fencerow.core.store import store
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import (
    JobCancelled,
    JobFailed,
    JobGone,
    JobNotFound,
    NotReady,
    ResultTimeout,
    SchemaMissing,
    Unavailable,
)
from tests.core.client.flaky import Flaky, until
from tests.kit.jobs import AnyEngine, claim, register, running, submit
from tests.kit.pace import PATIENCE_S
from tests.kit.shortage import no_descriptors, no_thread


@pytest.fixture
def client(engine: AnyEngine) -> Iterator[Client]:
    made = Client(engine)
    yield made
    made.close()


def handle_of(client: Client, job_id: str, *, existed: bool = True) -> Handle[Any]:
    return Handle(client, job_id, msgspec.json.decode, _existed=existed)


def succeed(engine: AnyEngine, job_id: str, result: str = '{"pages":3}') -> None:
    holder = register(engine)
    got: list[Claimed] = []

    def is_claimed() -> bool:
        got.extend(claim(engine, holder))
        return bool(got)

    # A waiter may hold the row for an instant to mark it as awaited, and a claim and an end skip what is locked.
    until(is_claimed)
    (claimed,) = got
    assert claimed.id == job_id
    until(
        lambda: bool(
            engine.run(store.succeed([store.Success(job_id, claimed.attempt, result)], holder=holder))
        )
    )


def fail(engine: AnyEngine, error: str) -> str:
    holder = register(engine)
    claimed = running(engine, holder)
    assert engine.run(store.fail([store.Failure(claimed.id, claimed.attempt, error)], holder=holder))
    return claimed.id


def later(work: Any, *args: Any) -> threading.Thread:
    thread = threading.Thread(target=work, args=args)
    thread.start()
    return thread


def waiting_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == "fencerow-results"]


def test_the_result_of_a_finished_job_comes_at_once(engine: AnyEngine, client: Client) -> None:
    (job_id,) = submit(engine)
    succeed(engine, job_id)

    assert handle_of(client, job_id).result(PATIENCE_S) == {"pages": 3}


def test_a_waiter_gets_the_result_when_the_job_ends(engine: AnyEngine, client: Client) -> None:
    (job_id,) = submit(engine)
    results: list[Any] = []
    thread = later(lambda: results.append(handle_of(client, job_id).result(PATIENCE_S)))
    until(lambda: bool(waiting_threads()))

    succeed(engine, job_id)
    thread.join(PATIENCE_S)

    assert results == [{"pages": 3}]


async def test_sync_and_async_waiters_share_one_poller(engine: AnyEngine, client: Client) -> None:
    ids = [submit(engine)[0] for _ in range(5)]
    tasks = [asyncio.create_task(handle_of(client, job_id).aresult(PATIENCE_S)) for job_id in ids]
    thread = later(handle_of(client, ids[0]).result, PATIENCE_S)
    await asyncio.to_thread(until, lambda: bool(waiting_threads()))

    assert len(waiting_threads()) == 1

    holder = register(engine)
    jobs = claim(engine, holder)
    while len(jobs) < len(ids):  # a claim passes over what the poller is just marking as awaited
        jobs += claim(engine, holder)
    left = {job.id for job in jobs}
    while left:  # and so does an end: a worker tries again
        done = [store.Success(job_id, 1, "7") for job_id in left]
        left -= {moved.id for moved in engine.run(store.succeed(done, holder=holder))}
    assert await asyncio.gather(*tasks) == [7] * 5
    await asyncio.to_thread(thread.join, PATIENCE_S)


def test_a_failed_job_raises_what_its_last_attempt_reported(engine: AnyEngine, client: Client) -> None:
    record = ErrorRecord("ValueError", "no such page", "Traceback…", "permanent_error")
    job_id = fail(engine, record.to_json())

    with pytest.raises(JobFailed, match="ValueError: no such page") as raised:
        handle_of(client, job_id).result(PATIENCE_S)

    assert raised.value.error == record
    assert raised.value.job_id == job_id


@pytest.mark.parametrize("stored", ['{"code":"expired","message":"too late"}', "7", '{"type":5}'])
def test_an_error_of_another_shape_is_shown_all_the_same(
    engine: AnyEngine, client: Client, stored: str
) -> None:
    with pytest.raises(JobFailed):
        handle_of(client, fail(engine, stored)).result(PATIENCE_S)


def test_a_cancelled_job_has_no_result(engine: AnyEngine, client: Client) -> None:
    (job_id,) = submit(engine)
    client.cancel(job_id)

    with pytest.raises(JobCancelled):
        handle_of(client, job_id).result(PATIENCE_S)


def test_a_job_that_was_removed_is_gone(engine: AnyEngine, client: Client) -> None:
    (job_id,) = submit(engine)
    client.cancel(job_id)
    client.delete(job_id)

    with pytest.raises(JobGone):
        handle_of(client, job_id).result(PATIENCE_S)


def test_a_job_that_is_not_there_yet_is_not_found_instead_of_waited_for(client: Client) -> None:
    with pytest.raises(JobNotFound, match="commit the transaction") as raised:
        handle_of(client, new_id(), existed=False).result()

    assert not isinstance(raised.value, JobGone)


def test_a_job_that_is_deleted_while_somebody_waits_is_noticed(
    engine: AnyEngine, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "EXISTENCE_S", 0.1)
    job = running(engine)
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            handle_of(client, job.id).result(PATIENCE_S)
        except JobGone as error:
            errors.append(error)

    thread = later(wait)
    until(lambda: bool(client._poller._marked))
    with engine.session() as session:
        session.connection.execute(f"DELETE FROM {_table(engine)}")
    thread.join(PATIENCE_S)

    assert len(errors) == 1


def _table(engine: AnyEngine) -> str:
    return "fencerow_jobs" if engine.dialect == "sqlite" else "fencerow.jobs"


def test_a_timeout_leaves_the_job_alone(engine: AnyEngine, client: Client) -> None:
    (job_id,) = submit(engine)

    with pytest.raises(ResultTimeout) as raised:
        handle_of(client, job_id).result(0.1)

    assert isinstance(raised.value, TimeoutError)
    succeed(engine, job_id)
    assert handle_of(client, job_id).result(PATIENCE_S) == {"pages": 3}


async def test_an_async_timeout_leaves_the_job_alone(engine: AnyEngine, client: Client) -> None:
    (job_id,) = submit(engine)

    with pytest.raises(ResultTimeout):
        await handle_of(client, job_id).aresult(0.1)

    succeed(engine, job_id)
    assert await handle_of(client, job_id).aresult(PATIENCE_S) == {"pages": 3}


def test_an_outage_is_survived_until_the_callers_timeout(engine: AnyEngine) -> None:
    flaky = Flaky(engine)
    client = Client(flaky)
    (job_id,) = submit(engine)
    results: list[Any] = []
    thread = later(lambda: results.append(handle_of(client, job_id).result(PATIENCE_S)))
    until(lambda: bool(client._poller._marked))

    flaky.down = True
    until(lambda: client._poller.trouble is not None)
    succeed(engine, job_id)
    with pytest.raises(ResultTimeout, match="could not be asked"):
        handle_of(client, job_id).result(0.2)
    flaky.down = False
    thread.join(PATIENCE_S)

    assert results == [{"pages": 3}]
    client.close()


def test_an_error_that_will_not_pass_reaches_the_waiters(engine: AnyEngine, client: Client) -> None:
    with engine.session() as session:
        session.connection.execute(f"ALTER TABLE {_table(engine)} RENAME TO away")
        if engine.dialect == "postgres":
            session.connection.execute("DROP VIEW fencerow.all_jobs")

    with pytest.raises(SchemaMissing):
        handle_of(client, new_id()).result(PATIENCE_S)


def test_an_announced_end_is_seen_at_once(
    engine: AnyEngine, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "PAUSE_MIN_S", 3600.0)
    monkeypatch.setattr(waiting, "PAUSE_MAX_S", 3600.0)
    (job_id,) = submit(engine)
    results: list[Any] = []
    thread = later(lambda: results.append(handle_of(client, job_id).result(PATIENCE_S)))
    until(lambda: bool(client._poller._marked))
    if engine.dialect == "postgres":
        until(lambda: any(each.name == "fencerow-listen" for each in threading.enumerate()))
    started = time.monotonic()
    succeed(engine, job_id)

    while thread.is_alive() and time.monotonic() < started + PATIENCE_S:
        engine.wake(encode_ended([job_id]))  # LISTEN may not stand yet
        thread.join(0.05)

    assert results == [{"pages": 3}]


def test_waiting_marks_the_job_so_that_its_end_is_announced(engine: AnyEngine, client: Client) -> None:
    job = running(engine, holder := register(engine))
    thread = later(lambda: handle_of(client, job.id).result(PATIENCE_S))
    until(lambda: bool(client._poller._marked))

    (moved,) = engine.run(store.succeed([store.Success(job.id, 1, "1")], holder=holder))

    assert moved.awaited
    thread.join(PATIENCE_S)


def test_no_thread_is_left_when_nobody_waits(
    engine: AnyEngine, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "LINGER_S", 0.05)
    (job_id,) = submit(engine)
    succeed(engine, job_id)

    handle_of(client, job_id).result(PATIENCE_S)

    until(lambda: not waiting_threads())


def test_closing_tells_those_who_wait(engine: AnyEngine) -> None:
    client = Client(engine)
    (job_id,) = submit(engine)
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            handle_of(client, job_id).result(PATIENCE_S)
        except Unavailable as error:
            errors.append(error)

    thread = later(wait)
    until(lambda: bool(client._poller._marked))
    client.close()
    thread.join(PATIENCE_S)

    assert len(errors) == 1
    assert not waiting_threads()
    with pytest.raises(Unavailable):
        handle_of(client, job_id).result(1)


async def test_a_cancelled_waiter_is_forgotten(engine: AnyEngine, client: Client) -> None:
    (job_id,) = submit(engine)
    task = asyncio.create_task(handle_of(client, job_id).aresult(PATIENCE_S))
    await asyncio.to_thread(until, lambda: bool(client._poller._marked))

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert not client._poller._watched


def test_a_result_survives_a_retry(engine: AnyEngine, client: Client) -> None:
    job = running(engine, holder := register(engine))
    handle = handle_of(client, job.id)
    engine.run(
        store.requeue([store.Requeue(id=job.id, attempt=1, kind="retried", failures=1)], holder=holder)
    )

    succeed(engine, job.id)

    assert handle.result(PATIENCE_S) == {"pages": 3}


def test_no_time_to_wait_means_one_look(engine: AnyEngine, client: Client) -> None:
    (job_id,) = submit(engine)
    with pytest.raises(NotReady) as raised:
        handle_of(client, job_id).result(timeout_s=0)
    assert isinstance(raised.value, ResultTimeout)

    succeed(engine, job_id)

    assert handle_of(client, job_id).result(timeout_s=0) == {"pages": 3}
    with pytest.raises(JobNotFound):
        handle_of(client, new_id(), existed=False).result(timeout_s=0)


def test_a_result_is_heard_after_a_time_without_descriptors(engine: AnyEngine, client: Client) -> None:
    """The thread that waits for results died of it once, and nobody started another."""
    (job_id,) = submit(engine)
    with pytest.raises(ResultTimeout):
        handle_of(client, job_id).result(0.2)  # the pool has its connection
    until(lambda: not waiting_threads())
    errors: list[Exception] = []
    with no_descriptors():
        try:
            handle_of(client, job_id).result(0.5)
        except Exception as error:
            errors.append(error)
    waiter = later(succeed, engine, job_id)

    assert handle_of(client, job_id).result(PATIENCE_S) == {"pages": 3}
    waiter.join()
    assert [type(each) for each in errors] == [ResultTimeout]


def test_a_result_is_heard_though_listening_fails_at_first(
    lite: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    listened: list[object] = []
    listen = lite.listen

    def failing(callback: Any) -> Any:
        listened.append(callback)
        if len(listened) < 3:
            raise OSError(errno.EMFILE, "Too many open files")
        return listen(callback)

    monkeypatch.setattr(lite, "listen", failing)
    client = Client(lite)
    (job_id,) = submit(lite)
    results: list[Any] = []
    waiter = later(lambda: results.append(handle_of(client, job_id).result(PATIENCE_S)))
    until(lambda: len(listened) >= 3)
    succeed(lite, job_id)
    waiter.join(PATIENCE_S)
    client.close()

    assert results == [{"pages": 3}]


def test_a_wait_that_finds_no_thread_says_so_and_the_next_finds_one(lite: SqliteEngine) -> None:
    client = Client(lite)
    (job_id,) = submit(lite)
    with no_thread("fencerow-results"), pytest.raises(RuntimeError, match="new thread"):
        handle_of(client, job_id).result(PATIENCE_S)
    succeed(lite, job_id)

    assert handle_of(client, job_id).result(PATIENCE_S) == {"pages": 3}
    client.close()
