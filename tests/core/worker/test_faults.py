"""Lost replies, outages and bugs: nothing is repeated blindly, nothing is lost, nothing is swallowed."""

from __future__ import annotations

import asyncio
import re
import time

import psycopg
import pytest

from fencerow.core.background.loop import WorkerDied
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import KeyClaim
from fencerow.core.store import store
from fencerow.core.telemetry import Counters, Telemetry
from fencerow.core.worker import keeper
from fencerow.core.worker.acker import Acker
from fencerow.core.worker.attempt import Interrupt
from fencerow.core.worker.context import Job
from fencerow.core.worker.plain import Worker
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import LeaseLost
from fencerow.retention.maintenance import MaintenanceChore
from tests.core.worker.faulty import Faulty
from tests.core.worker.stage import Stage, job_of, kinds, quick, read, until, worker_of, working
from tests.kit.asked import submit_keyed
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S, slower


async def one() -> int:
    return 1


async def two() -> int:
    return 2


async def test_a_lost_reply_to_a_claim_lets_the_strangers_go(engine: AnyEngine) -> None:
    faulty = Faulty(engine)
    faulty.lose_reply("claim")
    async with working(faulty, one) as stage:  # type: ignore[arg-type]
        job = await stage.run("one")

    assert faulty.struck == ["claim"]
    assert (job.state, job.attempt, job.failures, job.crashes) == ("succeeded", 2, 0, 0)
    assert stage.counters.get("strangers_released") == 1
    assert "released" in await kinds(engine, job.id)


async def test_a_stranger_of_which_a_cancel_was_asked_is_stopped(engine: AnyEngine) -> None:
    """It can never be queued again; without that it would seem to run until its hard deadline."""

    class Asking(Faulty):
        async def arun(self, operation):  # type: ignore[no-untyped-def]
            result = await self._engine.arun(operation)
            if operation.name == "claim" and result:
                await engine.arun(store.cancel(result[0].id, actor="ada"))
            return self._after(operation, result)

    faulty = Asking(engine)
    faulty.lose_reply("claim", times=1000)
    async with working(faulty, one) as stage:  # type: ignore[arg-type]
        job_id = await stage.submit("one")
        await until(lambda: engine.run(store.read([job_id]))[job_id].is_final)

    job = await read(engine, job_id)
    assert (job.state, job.attempt) == ("cancelled", 1)


async def test_two_looks_in_a_row_do_not_let_a_job_go_whose_claim_is_under_way(engine: AnyEngine) -> None:
    """A flood of cancel hints makes the keeper look again at once, while the claim's reply is on its way."""
    held, go = asyncio.Event(), asyncio.Event()

    class Slow(Faulty):
        async def arun(self, operation):  # type: ignore[no-untyped-def]
            result = await self._engine.arun(operation)
            if operation.name == "claim" and result and not held.is_set():
                held.set()
                await go.wait()
            return result

    async with working(Slow(engine), one, config=quick(renew_s=0.1)) as stage:  # type: ignore[arg-type]
        job_id = await stage.submit("one")
        await held.wait()
        renewals = len(stage.heard.all("renewed"))
        for more in range(1, 6):
            stage.worker._parts.lease.renew_now()
            await stage.heard.wait("renewed", renewals + more)
        go.set()
        job = await stage.ended(job_id)

    assert (job.state, job.attempt) == ("succeeded", 1)
    assert stage.counters.get("strangers_released") == 0


@pytest.mark.parametrize("verb", ["succeed_first", "fail", "requeue", "stop"])
async def test_a_lost_reply_to_an_outcome_is_read_and_not_repeated(engine: AnyEngine, verb: str) -> None:
    async def ends(job: Job) -> None:
        if verb == "stop":
            while not job.cancelled:
                await asyncio.sleep(0.005)
            job.raise_if_cancelled()
        if verb in ("fail", "requeue") and job.attempt == 1:
            raise RuntimeError("as wanted")

    faulty = Faulty(engine)
    faulty.lose_reply(verb)
    async with working(faulty, ends) as stage:  # type: ignore[arg-type]
        job_id = await stage.submit("ends", attempts_max=1 if verb == "fail" else 2)
        if verb == "stop":
            await stage.heard.wait("claimed")
            await engine.arun(store.cancel(job_id, actor="ada"))
        job = await stage.ended(job_id)

    assert faulty.struck == [verb]
    assert job.state == {"fail": "failed", "stop": "cancelled"}.get(verb, "succeeded")
    assert faulty.seen.count("read_fences") >= 1
    assert faulty.seen.count(verb) == 1
    assert job.failures == {"fail": 1, "requeue": 1}.get(verb, 0)


async def test_what_a_write_queued_whose_reply_was_lost_does_not_wait_for_the_next_poll(
    engine: AnyEngine,
) -> None:
    """On PostgreSQL the success passed its turn on, on SQLite it left an arrival: nobody was told of either."""
    go = asyncio.Event()

    async def held() -> None:
        await go.wait()

    faulty = Faulty(engine)
    faulty.lose_reply("succeed_first")
    jobs = [job_of("held", exclusive="k") for _ in range(2)]
    await engine.arun(store.submit_gated(jobs))
    async with working(faulty, held, config=quick(poll_max_s=300.0)) as stage:  # type: ignore[arg-type]
        await stage.heard.wait("claimed")
        (pool,) = stage.worker._parts.roster.pools
        await until(pool.look.is_idle, what="nothing is thought to be due")
        go.set()
        for job in jobs:
            await stage.ended(job.id)

    assert faulty.struck == ["succeed_first"]


async def test_one_refused_outcome_of_a_group_fails_that_job_alone(
    engine: AnyEngine, caplog: pytest.LogCaptureFixture
) -> None:
    async def echo(text: str) -> str:
        return text

    class Refusing(Faulty):
        async def arun(self, operation):  # type: ignore[no-untyped-def]
            if operation.name.startswith("succeed") and "poison" in str(
                next(operation.steps()).params["outcomes"]
            ):
                raise psycopg.DataError("the database does not take this one")
            return await self._engine.arun(operation)

    jobs = [job_of("echo", {"text": "poison" if number == 3 else "good"}) for number in range(8)]
    await engine.arun(store.submit(jobs))
    async with working(Refusing(engine), echo, queues={"mail": 8}) as stage:  # type: ignore[arg-type]
        found = [await stage.ended(job.id) for job in jobs]

    assert [job.state for job in found] == ["succeeded"] * 3 + ["failed"] + ["succeeded"] * 4
    assert found[3].error["code"] == "outcome_refused"
    assert stage.counters.get("outcomes_refused") == 1


REFUSING = """
CREATE FUNCTION fencerow.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'nothing is taken here' USING ERRCODE = '{state}'; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON fencerow.finished_kept
    FOR EACH ROW WHEN (NEW.name = 'one') EXECUTE FUNCTION fencerow.refuse();
"""


@pytest.mark.parametrize("state", ["P0001", "42501", "57014"])
async def test_a_job_that_cannot_be_moved_to_the_finished_ones_is_failed_where_it_is_and_moved_later(
    pg: PostgresEngine, state: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Let go of, it would run again and again: its attempts count nothing."""
    with psycopg.connect(pg.conninfo) as connection:
        connection.execute(REFUSING.replace("{state}", state).encode())
    async with working(pg, one, two) as stage:
        job = await stage.run("one")
        other = await stage.run("two")

        assert (job.state, job.attempt, job.error["code"]) == ("failed", 1, "outcome_refused")
        assert other.state == "succeeded"
        assert stage.counters.get("outcomes_refused") == 2
        maintenance = MaintenanceChore(pg, quick(), Telemetry())
        await maintenance.round()
        assert await pg.arun(store.unmoved(limit=9)) == [job.id], "refused again, it stays"
        with psycopg.connect(pg.conninfo) as connection:
            connection.execute("DROP TRIGGER refuse ON fencerow.finished_kept")
        await maintenance.round()

    assert await pg.arun(store.unmoved(limit=9)) == []
    moved = await read(pg, job.id)
    assert (moved.state, moved.error) == ("failed", job.error)


async def test_an_outcome_of_which_the_database_takes_nothing_stays_with_its_worker(
    engine: AnyEngine, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fencerow.core.worker.acker.REFUSED_S", 0.01)
    faulty = Faulty(engine)
    for verb in ("succeed_first", "succeed_alone", "fail", "fail_in_place"):
        faulty.refuse(verb, psycopg.DataError("the database does not take this one"))
    async with working(faulty, one, two) as stage:  # type: ignore[arg-type]
        job_id = await stage.submit("one")
        await until(lambda: stage.counters.get("outcomes_refused") >= 6)
        assert (await read(engine, job_id)).attempt == 1, "it ran again"
        for verb in ("succeed_first", "succeed_alone", "fail", "fail_in_place"):
            faulty.allow(verb)
        job = await stage.ended(job_id)

    assert (job.state, job.attempt, job.error["code"]) == ("failed", 1, "outcome_refused")
    assert stage.counters.get("strangers_released") == 0


SLOW = """
CREATE FUNCTION fencerow.dawdle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_sleep(0.25); RETURN NEW; END $$;
CREATE TRIGGER dawdle BEFORE INSERT ON fencerow.finished_kept
    FOR EACH ROW WHEN (NEW.name = 'two') EXECUTE FUNCTION fencerow.dawdle();
"""


async def test_outcomes_that_take_longer_together_than_a_statement_may_are_written_in_parts(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Written whole again and again, none of them would ever be."""
    impatient = PostgresEngine(postgres_url, store.postgres_queries(), statement_timeout_s=3.0)
    with psycopg.connect(postgres_url) as connection:
        connection.execute(SLOW)
    jobs = [job_of("two") for _ in range(16)]
    await impatient.arun(store.submit(jobs))
    async with working(impatient, two, queues={"mail": 16}) as stage:
        found = [await stage.ended(job.id) for job in jobs]

    assert [(job.state, job.attempt) for job in found] == [("succeeded", 1)] * 16
    assert stage.counters.get("outcomes_too_slow") >= 1
    await impatient.aclose()


async def test_one_outcome_that_takes_too_long_lets_the_others_pass(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A stranger holds the row of its key, which its end stamps: a lock that is waited for, not skipped."""
    impatient = PostgresEngine(postgres_url, store.postgres_queries(), statement_timeout_s=3.0)
    stranger = psycopg.connect(postgres_url)
    keyed = job_of("one", scope="s", key="k")
    claim = KeyClaim(scope="s", key="k", job_id=keyed.id, fingerprint="f", lifetime_s=60)
    await impatient.arun(submit_keyed([keyed], [claim]))
    stranger.execute("SELECT 1 FROM fencerow.keys FOR UPDATE")
    jobs = [job_of("two") for _ in range(8)]
    await impatient.arun(store.submit(jobs))
    async with working(impatient, one, two, queues={"mail": 9}) as stage:
        others = [await stage.ended(job.id) for job in jobs]
        assert (await read(impatient, keyed.id)).state == "running"
        stranger.rollback()
        job = await stage.ended(keyed.id)
    stranger.close()
    await impatient.aclose()

    assert {each.state for each in others} == {"succeeded"}
    assert (job.state, job.attempt) == ("succeeded", 1)


async def test_a_row_locked_by_a_stranger_delays_no_other_outcome(pg: PostgresEngine) -> None:
    stranger = psycopg.connect(pg.conninfo)

    async def locked(job: Job) -> None:
        stranger.execute("SELECT 1 FROM fencerow.jobs WHERE id = %s FOR UPDATE", [job.id])

    async with working(pg, locked, one) as stage:
        behind = await stage.submit("locked")
        await stage.heard.wait("claimed")
        others = [await stage.run("one") for _ in range(5)]
        assert (await read(pg, behind)).state == "running"
        stranger.rollback()
        job = await stage.ended(behind)
    stranger.close()

    assert {each.state for each in others} == {"succeeded"}
    assert (job.state, job.attempt) == ("succeeded", 1)
    assert not stage.heard.all("lease_lost")


async def test_lease_lost_raised_by_the_handler_itself_is_a_failure(engine: AnyEngine) -> None:
    async def mistaken() -> None:
        raise LeaseLost("another library says so")

    async with working(engine, mistaken) as stage:
        job = await stage.run("mistaken", attempts_max=2)

    assert (job.state, job.attempt, job.failures) == ("failed", 2, 2)


async def test_a_dead_loop_takes_the_worker_down_with_its_reason(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def bug(_self: Acker) -> float:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Acker, "tick", bug)
    with pytest.raises(WorkerDied, match="ZeroDivisionError: a bug") as raised:
        await asyncio.wait_for(worker_of(engine, one).run(), PATIENCE_S)

    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert any(record.levelname == "CRITICAL" for record in caplog.records)


async def test_a_dead_loop_ends_the_block_that_uses_the_worker(
    lite: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def bug(_self: Acker) -> float:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Acker, "tick", bug)

    async def serve() -> None:
        async with worker_of(lite, one):
            await asyncio.Event().wait()

    with pytest.raises(WorkerDied):
        await asyncio.wait_for(serve(), PATIENCE_S)
    task = asyncio.current_task()
    assert task is not None and task.cancelling() == 0


async def test_trouble_with_the_database_does_not_end_a_loop(engine: AnyEngine) -> None:
    verbs = ("claim", "lanes", "succeed", "renew", "expire")
    faulty = Faulty(engine)
    async with working(faulty, one) as stage:  # type: ignore[arg-type]
        for verb in verbs:
            faulty.refuse(verb)
        await stage.heard.wait("loop_error", loop="reaper")
        await stage.heard.wait("loop_error", loop="claimer mail")
        await stage.heard.wait("loop_error", loop="keeper")
        job_id = await stage.submit("one")
        for verb in verbs:
            faulty.allow(verb)
        assert (await stage.ended(job_id)).state == "succeeded"
    assert stage.counters.get("loop_errors") > 0
    assert stage.counters.get("renewal_failures") > 0


async def test_a_worker_past_its_deadline_starts_nothing(engine: AnyEngine) -> None:
    faulty = Faulty(engine)
    async with working(faulty, one, config=quick(lease_s=1.0)) as stage:  # type: ignore[arg-type]
        faulty.refuse("renew")
        await until(lambda: not stage.worker._parts.lease.holds())
        job_id = await stage.submit("one")
        seen = len(faulty.seen)
        await until(lambda: faulty.seen[seen:].count("renew") >= 3)
        assert "claim" not in faulty.seen[seen:]
        faulty.allow("renew")
        assert (await stage.ended(job_id)).attempt == 1


LONG_S = slower(3.2)


@pytest.mark.timed
async def test_a_blocked_loop_and_a_busy_handler_keep_the_lease(engine: AnyEngine) -> None:
    async def blocks() -> None:
        time.sleep(LONG_S)

    def computes() -> None:
        until_s = time.monotonic() + LONG_S
        while time.monotonic() < until_s:
            sum(range(1000))

    config = quick(lease_s=slower(2.5))  # shorter than each handler
    async with working(engine, blocks, computes, config=config) as stage:
        holder = stage.worker.holder
        async with watching(engine) as watcher:
            for name in ("blocks", "computes"):
                job = await stage.run(name)
                assert (job.state, job.attempt, job.holder) == ("succeeded", 1, holder)
        assert not watcher.heard.all("reclaimed")
    assert stage.counters.get("loop_blocked") > 0


def watching(engine: AnyEngine):  # type: ignore[no-untyped-def]
    """Another worker, with the right to declare the first one dead."""
    return working(engine, one, queues={"other": 1}, config=quick(lease_s=1.0, renew_s=0.2, sweep_s=0.1))


async def test_middleware_that_fails_is_a_failure_of_the_attempt(engine: AnyEngine) -> None:
    async def wrap(job: Job, call):  # type: ignore[no-untyped-def]
        if job.attempt == 1:
            raise RuntimeError("middleware")
        return await call()

    async with working(engine, one, middleware=[wrap]) as stage:
        job = await stage.run("one")

    assert (job.state, job.attempt, job.failures) == ("succeeded", 2, 1)


async def test_middleware_that_fails_after_the_commit_changes_nothing(engine: AnyEngine) -> None:
    def pay(job: Job) -> int:
        with job.transaction():
            pass
        return 5

    seen: list[object] = []

    async def wrap(job: Job, call):  # type: ignore[no-untyped-def]
        seen.append(await call())
        raise RuntimeError("too late")

    async with working(engine, pay, middleware=[wrap]) as stage:
        job = await stage.run("pay")

    assert (job.state, job.result, job.attempt) == ("succeeded", 5, 1)
    assert seen == [5]
    assert stage.counters.get("middleware_errors") == 1


async def test_a_listener_that_fails_is_counted_and_breaks_nothing(lite: SqliteEngine) -> None:
    def bad(_name: str, _facts: object) -> None:
        raise RuntimeError("listener")

    worker = worker_of(lite, one)
    stage = Stage(lite, worker)
    worker.telemetry.listen(bad)
    async with worker:
        assert (await stage.run("one")).state == "succeeded"
    assert worker.telemetry.failures > 0


async def test_a_registration_that_fails_leaves_nothing_open(pg: PostgresEngine) -> None:
    faulty = Faulty(pg)
    faulty.refuse("register", RuntimeError("no"))
    worker = Worker(faulty, {}, {"mail": 1}, quick())
    with pytest.raises(RuntimeError, match="no"):
        await worker.start()  # the fixture looks for connections and threads that were left


async def test_an_interrupt_while_the_arguments_are_fetched_stops_the_start(engine: AnyEngine) -> None:
    ran: list[str] = []

    async def big(job: Job, text: str) -> None:
        ran.append(job.id)

    class Cancelling(Faulty):
        async def arun(self, operation):  # type: ignore[no-untyped-def]
            result = await self._engine.arun(operation)
            if operation.name == "fetch_args":
                (attempt,) = stage.worker._parts.roster.held.values()
                await engine.arun(store.cancel(attempt.claimed.id, actor="ada"))
                attempt.end(Interrupt.CANCEL)
            return result

    async with working(Cancelling(engine), big) as stage:  # type: ignore[arg-type]
        job = await stage.run("big", {"text": "x" * 100_000})

    assert (job.state, ran) == ("cancelled", [])


async def test_code_that_keeps_the_interpreter_lock_for_less_than_the_lease_keeps_it(
    engine: AnyEngine,
) -> None:
    def backtracks() -> float:
        began = time.monotonic()
        re.fullmatch("(a|aa)+b", "a" * 27)
        return time.monotonic() - began

    async with working(engine, backtracks, config=quick(lease_s=20.0, renew_s=0.2)) as stage:
        holder = stage.worker.holder
        job = await stage.run("backtracks")
        assert (job.state, job.attempt, stage.worker.holder) == ("succeeded", 1, holder)
        assert 0.02 < job.result < 15, "the pattern should hold the lock for a while"


async def test_a_renewal_that_comes_late_says_why(
    lite: SqliteEngine, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "LATE_S", 0.05)

    counters: list[Counters] = []

    def backtracks() -> None:
        """One long match after another, until the keeper has met one in its pause."""
        until_s, length, took_s = time.monotonic() + 60.0, 24, 0.0
        while time.monotonic() < until_s and counters[0].get("keeper_late") == 0:
            began = time.monotonic()
            re.fullmatch("(a|aa)+b", "a" * length)
            took_s = time.monotonic() - began
            length += took_s < 0.15  # its renewals wait for the interpreter lock too, a match each time

    async with working(lite, backtracks, config=quick(lease_s=20.0, renew_s=0.1)) as stage:
        counters.append(stage.counters)
        await stage.run("backtracks")
        assert stage.counters.get("keeper_late") > 0

    assert "s late: " in caplog.text


def test_a_process_that_was_stopped_is_not_said_to_compute() -> None:
    assert "stopped" in keeper._cause(late_s=10.0, used_s=0.1)
    assert "interpreter lock" in keeper._cause(late_s=10.0, used_s=9.0)


async def test_suspects_are_taken_one_by_one_but_without_waiting_for_sweeps(engine: AnyEngine) -> None:
    jobs = [job_of("one") for _ in range(30)]
    await engine.arun(store.submit(jobs))
    dead = new_id()
    await engine.arun(store.register(holder=dead, name="dead", host="h", pid=1, info="{}", lease_s=60))
    claimed = await engine.arun(
        store.claim("mail", [store.Mark(0)], holder=dead, names=["one"], limit=30, margin_s=60)
    )
    assert len(claimed) == 30
    await engine.arun(store.retire(holder=dead))
    began = time.monotonic()
    async with working(engine, one, config=quick(poll_max_s=5.0)) as stage:
        found = [await stage.ended(job.id) for job in jobs]

    assert {(job.state, job.attempt, job.crashes) for job in found} == {("succeeded", 2, 0)}
    assert time.monotonic() - began < 60, "one in five seconds would take two and a half minutes"
