"""Large payloads outside the database: in a folder, and in a real server that speaks S3."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest

from fencerow import App, Config, Job, JobFailed, KeyConflict
from fencerow.core.finding import Level
from fencerow.core.model.ids import new_id
from fencerow.core.telemetry import Fact
from fencerow.errors import Busy, ConfigError, PayloadAltered, StoreUnavailable
from fencerow.payloads import FolderStore, PayloadStore, S3Store, Seal
from fencerow.payloads.outside.checks import examine_outside
from fencerow.payloads.outside.names import OWNER
from fencerow.payloads.outside.owner import database_of_payloads
from fencerow.payloads.outside.places import store_at
from fencerow.payloads.outside.sweeping import Sweep
from fencerow.testing.clock import clock_of
from tests.kit.pace import PATIENCE_S
from tests.payloads.conftest import K1, MARKS, stored, write

LARGE = "x" * 100_000
START = """
import sys, threading
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def s3_url() -> Iterator[str]:
    """An S3 server in a process of its own, with a bucket."""
    words = [sys.executable, "-c", START]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None and server.stdin is not None
        said = next(line for line in server.stdout if line.strip().isdigit())  # it says other things before
        endpoint = f"http://127.0.0.1:{int(said)}"
        before = dict(os.environ)
        os.environ |= {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket="jobs")
        yield f"s3://jobs/{{}}?endpoint={endpoint}&region=us-east-1"
        os.environ.clear()
        os.environ |= before
        server.stdin.close()


@pytest.fixture(params=["folder", "s3"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return f"file://{tmp_path}/large"
    made: str = request.getfixturevalue("s3_url")
    return made.format(tmp_path.name)


@pytest.fixture
async def app(url: str, store_url: str) -> AsyncIterator[App]:
    async with App(
        url, config=Config(url=url, busy_timeout_s=0.5, outside_store=store_url), actor="ada"
    ) as made:
        yield made


def declare(app: App, name: str = "echo", **options: Any) -> Any:
    @app.job(name=name, **options)
    async def echo(text: str) -> str:
        return text[::-1]

    return echo


def names(store: PayloadStore) -> list[str]:
    return sorted(each.name for each in store.list("") if each.name != OWNER)


async def test_large_ones_lie_in_the_store_and_small_ones_in_the_row(app: App, store_url: str) -> None:
    echo = declare(app)
    small, large = await echo.asubmit("small"), await echo.asubmit(LARGE)
    assert stored(app, small.id)["args"] == '{"text":"small"}'
    row = stored(app, large.id)["args"]
    assert len(row) < 400 and large.id in row
    async with app.worker():
        assert (await large.aresult(60), await small.aresult(60)) == (LARGE, "llams")
    assert len(stored(app, large.id)["result"]) < 400
    assert len(names(store_at(store_url))) == 2


async def test_bulk_submits_transactions_and_plain_handlers_use_it_too(app: App) -> None:
    echo = declare(app)

    @app.job
    def writes(job: Job, text: str) -> str:
        with job.transaction():
            return text

    @app.on_submit
    def nothing(draft: Any) -> Iterator[None]:
        yield

    handles = await app.asubmit_many([echo.call(LARGE), writes.call(LARGE), echo.call("s")])
    plain = await asyncio.to_thread(echo.submit, LARGE)
    async with app.worker():
        assert [len(await each.aresult(60)) for each in (*handles, plain)] == [100_000, 100_000, 1, 100_000]
        assert len(await asyncio.to_thread(plain.result, 60)) == 100_000
    for each in (handles[1], plain):
        assert "outside" in stored(app, each.id)["args"] and "outside" in stored(app, each.id)["result"]


async def test_what_follows_a_job_stays_in_its_row(app: App, store_url: str) -> None:
    echo = declare(app)

    @app.job
    async def first(job: Job) -> None:
        job.submit_next(echo.using(id=after).call(LARGE))

    after = new_id()
    done = await first.asubmit()
    async with app.worker():
        await done.aresult(60)
        assert await app.client.handle(after).aresult(60) == LARGE
    assert len(stored(app, after)["args"]) > 100_000


async def test_a_repeated_key_or_id_is_known_by_the_payload(app: App) -> None:
    echo = declare(app)
    first = await echo.using(key="k").asubmit(LARGE)
    assert (await echo.using(key="k").asubmit(LARGE)).id == first.id
    with pytest.raises(KeyConflict):
        await echo.using(key="k").asubmit(LARGE + "y")
    second = await echo.asubmit(LARGE)
    assert (await echo.using(id=second.id).asubmit(LARGE)).replay
    unique = declare(app, "unique", unique=True)
    assert (await unique.asubmit(LARGE)).id == (await unique.asubmit(LARGE)).id


async def test_a_submit_that_finds_its_job_leaves_nothing_in_the_store(app: App, store_url: str) -> None:
    """Unique jobs are for bursts, and the sweep takes a day. Under an id of its own it may be the job that is there."""
    store = store_at(store_url)
    unique, echo = declare(app, "unique", unique=lambda text: "k"), declare(app)
    first = await unique.asubmit(LARGE)
    assert {(await unique.asubmit(LARGE)).id for _ in range(2)} == {first.id}
    keyed = [echo.using(key="k").call(LARGE) for _ in range(2)]
    second = (await app.asubmit_many(keyed))[0]
    third = await echo.using(id=new_id()).asubmit(LARGE)
    assert (await echo.using(id=third.id).asubmit(LARGE)).replay
    for thread in threading.enumerate():
        if thread.name == "fencerow-store":
            await asyncio.to_thread(thread.join, PATIENCE_S)
    assert sorted(each.split("/")[1] for each in names(store)) == sorted(
        [first.id, second.id, *[third.id] * 2]
    )
    async with app.worker():
        assert [len(await each.aresult(PATIENCE_S)) for each in (first, second, third)] == [100_000] * 3


async def test_sealed_ones_are_sealed_in_the_store(url: str, tmp_path: Path) -> None:
    config = Config(url=url, outside_store=f"file://{tmp_path}/large")
    async with App(url, config=config, seal=Seal({"k1": K1}, marks=MARKS)) as app:
        handle = await declare(app).asubmit(LARGE)
        (path,) = (tmp_path / "large").rglob("arguments-*")
        assert b"x" * 20 not in path.read_bytes()  # four come by chance, once in some hundred runs
        async with app.worker():
            assert await handle.aresult(60) == LARGE


async def test_a_store_that_is_away_refuses_the_submit_and_stores_nothing(app: App, url: str) -> None:
    away = f"file:///proc/none/{os.getpid()}"
    async with App(url, config=Config(url=url, busy_timeout_s=0.5, outside_store=away)) as cut:
        echo = declare(cut)
        with pytest.raises(StoreUnavailable):
            await echo.using(key="k").asubmit(LARGE)
        with pytest.raises(StoreUnavailable):
            await cut.asubmit_many([echo.call("small"), echo.call(LARGE)])
    first = await declare(app).using(key="k").asubmit(LARGE)
    assert first.answer == "inserted", "the key was not taken"
    async with app.worker():
        assert await first.aresult(60) == LARGE
    assert app.telemetry.counters.get("attempts_failed") == 0


async def test_s3_that_is_away_is_told_as_such(s3_url: str) -> None:
    store = S3Store.at("none-such", "p", s3_url.partition("?")[2])
    for call in (lambda: store.put("a", b""), lambda: list(store.list("")), lambda: store.delete("a")):
        with pytest.raises(StoreUnavailable, match="NoSuchBucket"):
            await asyncio.to_thread(call)


async def test_jobs_wait_uncounted_for_a_store_that_is_away_and_it_is_told_once(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, gone = tmp_path / "large", tmp_path / "unmounted"
    async with App(url, config=Config(url=url, busy_timeout_s=0.5, outside_store=f"file://{folder}")) as app:
        echo = declare(app)
        first, second = await echo.asubmit(LARGE), await echo.asubmit(LARGE)
        folder.rename(gone)
        back: asyncio.Queue[str] = asyncio.Queue()
        app.telemetry.listen(
            lambda name, facts: back.put_nowait(facts["reason"]) if name == Fact.RELEASED else None
        )
        clock = clock_of(app.engine)
        async with app.worker():
            for _ in range(2):
                assert "FR-312" in await asyncio.wait_for(back.get(), 30)
            record = await first.arefresh()
            assert (record.state, record.failures, record.snoozes) == ("queued", 0, 0)
            gone.rename(folder)
            clock.advance(120)
            assert [await first.aresult(60), await second.aresult(60)] == [LARGE, LARGE]
        clock.close()
    assert sum("until their store answers" in each.getMessage() for each in caplog.records) == 1


async def test_a_result_for_which_the_store_is_away_goes_into_its_row(url: str, tmp_path: Path) -> None:
    folder = tmp_path / "large"
    async with App(url, config=Config(url=url, busy_timeout_s=0.5, outside_store=f"file://{folder}")) as app:

        @app.job
        async def cuts() -> str:
            folder.write_bytes(b"no folder")
            return LARGE

        handle = await cuts.asubmit()
        async with app.worker():
            assert await handle.aresult(60) == LARGE
        assert len(stored(app, handle.id)["result"]) > 100_000


@pytest.mark.parametrize("change", ["object", "other", "gone"])
async def test_an_altered_or_missing_object_fails_its_job_and_no_other(
    app: App, store_url: str, change: str
) -> None:
    echo, store = declare(app), store_at(store_url)
    one, two = await echo.asubmit(LARGE), await echo.asubmit(LARGE + "y")
    (name,) = (each for each in names(store) if one.id in each)
    if change == "object":
        store.put(name, b'{"text":"short"}')
    elif change == "other":
        write(app, one.id, "args", stored(app, two.id)["args"])
    else:
        store.delete(name)
    async with app.worker():
        with pytest.raises(JobFailed) as caught:
            await one.aresult(60)
        assert len(await two.aresult(60)) == 100_001
    assert caught.value.error.code == ("payload_missing" if change == "gone" else "payload_altered")


async def test_no_more_is_read_of_an_object_than_its_payload_has(
    app: App, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whoever can write to the store ends every worker, for want of memory."""
    echo, store, read = declare(app), store_at(store_url), []
    handle = await echo.asubmit(LARGE)
    (name,) = names(store)
    store.put(name, b"x" * 3_000_000)
    real = type(store).get

    def get(self: Any, name: str, bytes_max: int) -> bytes:
        found = real(self, name, bytes_max)
        read.append(len(found))
        return found

    monkeypatch.setattr(type(store), "get", get)
    async with app.worker():
        with pytest.raises(JobFailed) as caught:
            await handle.aresult(60)
    assert caught.value.error.code == "payload_altered"
    assert max(read) < 101_000


async def test_an_altered_result_is_not_handed_on(app: App, store_url: str) -> None:
    handle = await declare(app).asubmit(LARGE)
    async with app.worker():
        await handle.aresult(60)
    store = store_at(store_url)
    (name,) = (each for each in names(store) if "/result-" in each)
    store.put(name, b'"other"')
    with pytest.raises(PayloadAltered):
        await handle.aresult(60)


# --- orphans --------------------------------------------------------------------------------------------


def sweep(app: App, store: PayloadStore, orphan_s: float = 0.0) -> Sweep:
    return Sweep(app.engine, store, orphan_s)


async def test_what_belongs_to_a_job_stays_and_goes_with_it(app: App, store_url: str) -> None:
    store, echo = store_at(store_url), declare(app)
    live, ended = await echo.asubmit(LARGE), await echo.using(queue="other").asubmit(LARGE)
    async with app.worker(["other"]):
        await ended.aresult(60)
    looks = sweep(app, store)
    assert [await asyncio.to_thread(looks.remove) for _ in range(3)] == [0, 0, 0]
    assert len(names(store)) == 3
    await asyncio.to_thread(delete, app, ended.id)
    assert [await asyncio.to_thread(looks.remove) for _ in range(2)] == [0, 2]
    assert [each.split("/")[1] for each in names(store)] == [live.id]


def delete(app: App, job_id: str) -> None:
    table = "fencerow_finished_jobs" if app.engine.dialect == "sqlite" else "fencerow.finished_jobs"
    with app.engine.session() as session:
        session.connection.execute(f"DELETE FROM {table} WHERE id = '{job_id}'")


async def test_a_submit_that_may_still_commit_keeps_its_payload(app: App, store_url: str) -> None:
    """However old its object is: the transaction was under way when the sweep first looked."""
    store, echo = store_at(store_url), declare(app)
    await echo.asubmit("the tables are looked at before the first submit")
    looks = sweep(app, store)
    with app.engine.session() as session:
        handle = await asyncio.to_thread(echo.using(connection=session.connection).submit, LARGE)
        if app.engine.dialect == "postgres":
            assert [await asyncio.to_thread(looks.remove) for _ in range(3)] == [0, 0, 0]
        else:
            with pytest.raises(Busy):
                await asyncio.to_thread(looks.remove)
    assert [await asyncio.to_thread(looks.remove) for _ in range(2)] == [0, 0]
    async with app.worker():
        assert await handle.aresult(60) == LARGE


async def test_a_submit_that_was_rolled_back_leaves_an_orphan_that_the_doctor_names(
    app: App, store_url: str
) -> None:
    store, echo = store_at(store_url), declare(app)
    await echo.asubmit("the tables are looked at before the first submit")
    with pytest.raises(ZeroDivisionError), app.engine.session() as session:
        await asyncio.to_thread(echo.using(connection=session.connection).submit, LARGE)
        raise ZeroDivisionError
    (finding,) = await asyncio.to_thread(lambda: list(examine_outside(app.engine, app.config)))
    assert finding.level is Level.INFO and names(store)[0] in finding.found
    young = sweep(app, store, 3600.0)
    assert [await asyncio.to_thread(young.remove) for _ in range(3)] == [0, 0, 0], "it is too young"
    looks = sweep(app, store)
    assert [await asyncio.to_thread(looks.remove) for _ in range(2)] == [0, 1]
    (finding,) = await asyncio.to_thread(lambda: list(examine_outside(app.engine, app.config)))
    assert (finding.level, finding.found) == (Level.OK, "0 objects, each of a job")


async def test_a_live_attempts_result_is_no_orphan_and_a_stale_ones_is(app: App, store_url: str) -> None:
    store, echo = store_at(store_url), declare(app)
    handle = await echo.asubmit(LARGE)
    own = await asyncio.to_thread(app.engine.run, database_of_payloads())
    store.put(f"{own}/{handle.id}/result-0123456789abcdef", b"of an attempt that has not ended yet")
    looks = sweep(app, store)
    assert [await asyncio.to_thread(looks.remove) for _ in range(2)] == [0, 0]
    async with app.worker():
        await handle.aresult(60)
    assert [await asyncio.to_thread(looks.remove) for _ in range(2)] == [1, 0]
    assert await handle.aresult(60) == LARGE


async def test_the_store_of_another_database_is_refused_at_the_first_submit_and_left_alone(
    app: App, store_url: str, tmp_path: Path
) -> None:
    store = store_at(store_url)
    await declare(app).asubmit(LARGE)
    url = f"sqlite:///{tmp_path}/another.db"
    async with App(url, config=Config(url=url, busy_timeout_s=0.5, outside_store=store_url)) as other:
        echo = declare(other)
        with pytest.raises(ConfigError, match="belongs to the database"):
            await echo.asubmit(LARGE)
        for look in (sweep(other, store).remove, lambda: list(examine_outside(other.engine, other.config))):
            with pytest.raises(ConfigError, match="belongs to the database"):
                await asyncio.to_thread(look)
    assert len(names(store)) == 1


async def test_what_has_no_name_of_ours_is_never_removed(app: App, store_url: str) -> None:
    """Whatever looks like ours: of another database, of no job, nearly a name, or deeper."""
    store, echo = store_at(store_url), declare(app)
    await echo.asubmit(LARGE)
    (own_name,) = names(store)
    own, job_id, _ = own_name.split("/")
    others = [
        "2019/001.pdf",
        "a/b/c/d.txt",
        f"{job_id}/arguments-0123456789abcdef",
        f"{new_id()}/{new_id()}/arguments-0123456789abcdef",
        f"{own}/{job_id}/thesis.txt",
        f"{own}/{new_id()}/arguments-0123456789abcdef.pdf",
        f"{own}/{new_id()}/arguments-0123456789abcdef/a",
    ]
    for each in others:
        store.put(each, b"years of work")
    looks = sweep(app, store)

    assert [await asyncio.to_thread(looks.remove) for _ in range(3)] == [0, 0, 0]
    assert names(store) == sorted([own_name, *others])
    findings = await asyncio.to_thread(lambda: list(examine_outside(app.engine, app.config)))
    assert [each.level for each in findings] == [Level.OK, Level.WARN]
    assert any(each in findings[1].found for each in others)


async def test_a_store_that_has_things_of_others_is_refused(app: App, store_url: str) -> None:
    store = store_at(store_url)
    store.put("readme.txt", b"of somebody else")
    with pytest.raises(ConfigError, match=r"is not empty: it has readme\.txt"):
        await declare(app).asubmit(LARGE)
    assert names(store) == ["readme.txt"]


async def test_two_sets_of_tables_in_one_file_are_two_databases(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/both.db"
    ids = set()
    for prefix in ("a_", "b_"):
        async with App(url, table_prefix=prefix) as app:
            await asyncio.to_thread(app.check_or_create)
            ids.add(await asyncio.to_thread(app.engine.run, database_of_payloads()))
    assert len(ids) == 2


async def test_workers_sweep_by_themselves(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fencerow.payloads.outside import chore

    monkeypatch.setattr(chore, "SWEEP_S", 0.05)
    store = FolderStore(tmp_path / "large")
    async with App(url, outside=store) as app:
        await asyncio.to_thread(app.check_or_create)
        own = await asyncio.to_thread(app.engine.run, database_of_payloads())
        orphan = f"{own}/{new_id()}/arguments-0123456789abcdef"
        store.put(orphan, b"x")
        os.utime(tmp_path / "large" / orphan, (0.0, 0.0))
        declare(app)
        async with app.worker():
            for _ in range(600):
                if not names(store):
                    break
                await asyncio.sleep(0.05)
    assert names(store) == []


@pytest.mark.parametrize("wrong", ["", "folder", "file://", "s3://bucket", "ftp://x/y", "s3://b/p?secret=x"])
def test_what_names_no_store_is_refused(wrong: str) -> None:
    with pytest.raises(ConfigError):
        store_at(wrong)


def test_s3_gives_an_address_at_which_one_object_is_read_without_credentials(
    s3_url: str, tmp_path: Path
) -> None:
    store = S3Store.at("jobs", tmp_path.name, s3_url.partition("?")[2])
    store.put("a/b", b"[1]")

    address = store.address("a/b", 60)

    assert httpx.get(address).content == b"[1]" and "Expires" in address
    assert httpx.get(address.replace("/a/b", "/a/c")).status_code >= 400


def test_a_list_goes_on_beyond_what_one_request_brings(s3_url: str, tmp_path: Path) -> None:
    store = store_at(s3_url.format(tmp_path.name))
    real = store._client.list_objects_v2  # type: ignore[attr-defined]
    for number in range(5):
        store.put(f"a/{number}", b"x")
    store.put("b/0", b"x")
    store._client.list_objects_v2 = lambda **given: real(MaxKeys=2, **given)  # type: ignore[attr-defined]
    assert [each.name for each in store.list("a/")] == [f"a/{number}" for number in range(5)]
