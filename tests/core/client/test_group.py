from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from fencerow.client import Client
from fencerow.core.client.submit_group import GROUP_BYTES_MAX, GROUP_ROWS_MAX, SubmitGroup
from fencerow.core.model.job import KeyClaim
from fencerow.core.model.submission import Submission
from fencerow.db.postgres import PostgresEngine
from fencerow.errors import NotPermitted, OutcomeUnknown, RowRefused, Unavailable
from tests.core.client.flaky import Flaky
from tests.kit.jobs import AnyEngine, new_job
from tests.kit.pace import PATIENCE_S

FORBIDS = """
CREATE FUNCTION fencerow.forbid() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.priority = 7 THEN RAISE EXCEPTION 'not this one' USING ERRCODE = '{state}'; END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER forbid BEFORE INSERT ON fencerow.jobs FOR EACH ROW EXECUTE FUNCTION fencerow.forbid()
"""
POLICY = """
ALTER TABLE fencerow.jobs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY forbid ON fencerow.jobs USING (priority <> 7)
"""


def plain(**changes: Any) -> Submission:
    return Submission(new_job(**changes))


async def test_a_hundred_concurrent_submits_take_few_statements(engine: AnyEngine) -> None:
    flaky = Flaky(engine)
    client = Client(flaky)

    answers = await asyncio.gather(*(client.asubmit([plain()]) for _ in range(100)))

    assert len({answer.id for (answer,) in answers}) == 100
    assert len(await client.alist_jobs(limit=200)) == 100
    assert len([name for name in flaky.ran if name == "submit"]) <= 3


async def test_one_bad_member_fails_alone(engine: AnyEngine) -> None:
    client = Client(engine)
    bad = plain(priority=1_000)  # refused by the table; the door of App would not let it in

    answers = await asyncio.gather(
        *(client.asubmit([each]) for each in [plain(), plain(), bad, plain()]), return_exceptions=True
    )

    assert [isinstance(answer, BaseException) for answer in answers] == [False, False, True, False]
    assert len(await client.alist_jobs()) == 3


@pytest.mark.parametrize(
    "rule", [*(FORBIDS.replace("{state}", state) for state in ("42501", "55000", "57014")), POLICY]
)
async def test_a_row_that_the_database_forbids_fails_alone(pg: PostgresEngine, rule: str) -> None:
    async with pg.asession() as session:
        await session.connection.execute(rule.encode())
    client = Client(pg)

    for _ in range(2):  # in a task, and sent at once
        answers = await asyncio.gather(
            *(client.asubmit([each]) for each in [plain(), plain(), plain(priority=7), plain()]),
            return_exceptions=True,
        )
        assert [isinstance(answer, RowRefused) for answer in answers] == [False, False, True, False]
    assert len(await client.alist_jobs()) == 6


@pytest.mark.parametrize("table", ["jobs", "repeated_ids"])  # the other one is read in a function
async def test_what_is_permitted_to_nobody_of_a_batch_is_asked_for_once(
    pg: PostgresEngine, table: str
) -> None:
    async with pg.asession() as session:
        await session.connection.execute(
            "SELECT setval('fencerow.repeats_until', 9999999999)"
        )  # so it is read
        await session.connection.execute(f"REVOKE ALL ON fencerow.{table} FROM CURRENT_USER".encode())
    flaky = Flaky(pg)
    client = Client(flaky)

    answers = await asyncio.gather(*(client.asubmit([plain()]) for _ in range(50)), return_exceptions=True)

    assert {type(answer) for answer in answers} == {NotPermitted}
    assert flaky.ran == ["submit"]


async def test_those_that_arrive_meanwhile_go_together(engine: AnyEngine) -> None:
    flaky = Flaky(engine)
    client = Client(flaky)
    flaky.gate = asyncio.Event()
    first = asyncio.create_task(client.asubmit([plain()]))
    await flaky.entered.wait()

    later = [asyncio.create_task(client.asubmit([plain()])) for _ in range(20)]
    await asyncio.sleep(0)
    flaky.gate.set()
    await asyncio.gather(first, *later)

    assert flaky.ran == ["submit", "submit"]


async def test_a_cancelled_caller_does_not_take_the_insert_back(engine: AnyEngine) -> None:
    flaky = Flaky(engine)
    client = Client(flaky)
    flaky.gate = asyncio.Event()
    wanted = plain()
    caller = asyncio.create_task(client.asubmit([wanted]))
    await flaky.entered.wait()

    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    flaky.gate.set()
    await client.aclose()

    assert [job.id for job in await client.alist_jobs()] == [wanted.job.id]


async def test_keyed_submits_never_share_a_statement_with_strangers(engine: AnyEngine) -> None:
    flaky = Flaky(engine)
    client = Client(flaky)
    job = new_job(scope="s", key="k")
    keyed = Submission(job, KeyClaim(scope="s", key="k", job_id=job.id, fingerprint="f", lifetime_s=1))

    await asyncio.gather(client.asubmit([plain()]), client.asubmit([keyed]), client.asubmit([plain()]))

    assert sorted(flaky.ran) == ["resubmit_asked", "submit"]


async def test_every_caller_of_a_batch_learns_that_the_database_is_away(engine: AnyEngine) -> None:
    flaky = Flaky(engine, "down")

    answers = await asyncio.gather(
        *(Client(flaky).asubmit([plain()]) for _ in range(1)),
        return_exceptions=True,
    )
    assert isinstance(answers[0], Unavailable)

    client = Client(Flaky(engine, "down"))
    both = await asyncio.gather(client.asubmit([plain()]), client.asubmit([plain()]), return_exceptions=True)

    assert all(isinstance(answer, Unavailable) for answer in both)
    assert both[0] is not both[1]


async def test_a_batch_in_doubt_is_asked_for_again_as_a_whole(engine: AnyEngine) -> None:
    flaky = Flaky(engine, "lost after")
    client = Client(flaky)

    await asyncio.gather(*(client.asubmit([plain()]) for _ in range(10)))

    assert flaky.ran == ["submit", "resubmit"]
    assert len(await client.alist_jobs()) == 10


@pytest.mark.parametrize("then", ["down", "full"])
async def test_doubt_that_stays_reaches_every_caller_with_its_ids(engine: AnyEngine, then: str) -> None:
    client = Client(Flaky(engine, "lost after", *[then] * 50), patience_s=0.1)
    wanted = [plain(), plain()]

    answers = await asyncio.gather(*(client.asubmit([each]) for each in wanted), return_exceptions=True)

    for each, answer in zip(wanted, answers, strict=True):
        assert isinstance(answer, OutcomeUnknown)
        assert answer.job_ids == (each.job.id,), "strangers' ids are no help"


async def test_batches_are_bounded_in_rows_and_bytes() -> None:
    sent: list[list[Submission]] = []

    async def send(batch: Sequence[Submission]) -> None:
        sent.append(list(batch))

    loop = asyncio.get_running_loop()
    group = SubmitGroup(send, loop)
    small = [plain() for _ in range(GROUP_ROWS_MAX + 1)]
    large = [plain(args_bytes=GROUP_BYTES_MAX // 2) for _ in range(3)]
    await asyncio.gather(*(group.submit(each, loop.create_future()) for each in [*small, *large]))

    assert max(len(batch) for batch in sent) == GROUP_ROWS_MAX
    assert all(sum(each.job.args_bytes for each in batch) <= GROUP_BYTES_MAX for batch in sent)
    assert [each for batch in sent for each in batch] == [*small, *large]


@pytest.mark.parametrize(("begun", "members"), [(True, 1), (True, 2), (False, 2)])
def test_an_interrupt_is_the_programs_and_no_cancel_of_who_submits(begun: bool, members: int) -> None:
    interrupted: list[KeyboardInterrupt] = []

    async def send(batch: Sequence[Submission]) -> None:
        await asyncio.sleep(0)
        if len(batch) == 2:
            raise interrupted.pop()

    def begin(_: Sequence[Submission], over: Callable[[object, BaseException | None], None]) -> bool:
        if not begun or not interrupted:
            return False
        loop.call_soon(over, None, interrupted.pop())
        return True

    async def submit(count: int = 1) -> None:
        await asyncio.gather(*(group.submit(plain(), loop.create_future()) for _ in range(count)))

    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        group = SubmitGroup(send, loop, begin)
        runner.run(submit(3))  # who comes after one that was alone goes alone
        if members == 1:
            runner.run(submit())
        interrupted.append(KeyboardInterrupt())
        met = [loop.create_task(submit()) for _ in range(members)]
        waiting: list[asyncio.Task[None]] = []
        loop.call_soon(lambda: waiting.append(loop.create_task(submit())))
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(asyncio.wait(met))

        told = loop.run_until_complete(
            asyncio.wait_for(asyncio.gather(*met, return_exceptions=True), PATIENCE_S)
        )
        loop.run_until_complete(waiting[0])  # it was not sent, and goes if the event loop goes on

    assert [type(each) for each in told] == [OutcomeUnknown] * len(met)


async def test_what_is_refused_of_a_batch_that_was_sent_at_once_fails_alone() -> None:
    """One of them is bad, or the engine could not even begin with them."""
    bad, sent = plain(), []

    async def send(batch: Sequence[Submission]) -> None:
        sent.append(len(batch))
        if bad in batch:
            raise ValueError

    def begin(batch: Sequence[Submission], over: Callable[[object, BaseException | None], None]) -> bool:
        if len(batch) == 2:
            raise ValueError
        loop.call_soon(over, None, ValueError())
        return True

    loop = asyncio.get_running_loop()
    group = SubmitGroup(send, loop, begin)
    for batch in [plain(), bad, plain()], [bad, plain()]:
        stored = (group.submit(each, loop.create_future()) for each in batch)
        told = await asyncio.wait_for(asyncio.gather(*stored, return_exceptions=True), PATIENCE_S)
        await group.drain()
        assert [type(each) for each in told] == [ValueError if each is bad else type(None) for each in batch]

    assert sent == [1, 1, 1, 1, 1]


@pytest.mark.parametrize("is_refused", [False, True])
async def test_a_task_that_is_cancelled_leaves_nobody_untold(is_refused: bool) -> None:
    """As who shuts down cancels all tasks: before its first step, or while members of a batch go one by one."""

    async def send(batch: Sequence[Submission]) -> None:
        if len(batch) > 1:
            raise ValueError
        if batch[0] is not last:
            await asyncio.Event().wait()

    loop, last = asyncio.get_running_loop(), plain()
    group = SubmitGroup(send, loop)
    stored = [group.submit(plain(), loop.create_future()) for _ in range(2 if is_refused else 1)]
    while group._sending is None:
        await asyncio.sleep(0)
    if is_refused:
        await turns()
    group._sending.cancel()
    await asyncio.wait(stored, timeout=PATIENCE_S)

    assert all(each.cancelled() for each in stored)
    await asyncio.wait_for(group.submit(last, loop.create_future()), PATIENCE_S)
    await asyncio.wait_for(group.drain(), PATIENCE_S)


async def test_who_waits_for_all_that_was_accepted_waits_for_none_that_come_later() -> None:
    def begin(_: Sequence[Submission], over: Callable[[object, BaseException | None], None]) -> bool:
        under_way.append(over)
        return True

    under_way: list[Callable[[object, BaseException | None], None]] = []
    loop = asyncio.get_running_loop()
    group = SubmitGroup(unasked, loop, begin)
    first = group.submit(plain(), loop.create_future())
    await asyncio.sleep(0)
    second = group.submit(plain(), loop.create_future())
    draining = asyncio.ensure_future(group.drain())
    for _ in range(2):
        await turns()
        assert not draining.done()
        group.submit(plain(), loop.create_future())
        under_way.pop()(None, None)
    await asyncio.wait_for(draining, PATIENCE_S)

    assert first.done()
    assert second.done()
    assert under_way, "others are under way"


async def test_an_engine_that_can_begin_nothing_leaves_nobody_untold_however_many_wait() -> None:
    def begin(_: Sequence[Submission], _over: Callable[[object, BaseException | None], None]) -> bool:
        raise RuntimeError("no thread")

    loop = asyncio.get_running_loop()
    group = SubmitGroup(unasked, loop, begin)
    large = [plain(args_bytes=GROUP_BYTES_MAX) for _ in range(1_000)]  # each is a batch
    stored = [group.submit(each, loop.create_future()) for each in large]
    told = await asyncio.wait_for(asyncio.gather(*stored, return_exceptions=True), PATIENCE_S)

    assert {str(each) for each in told} == {"no thread"}


async def turns() -> None:
    """Of the event loop, as many as any step here takes."""
    for _ in range(10):
        await asyncio.sleep(0)


async def unasked(_: Sequence[Submission]) -> None:
    raise AssertionError("it was begun")


def test_each_event_loop_has_a_group_of_its_own(engine: AnyEngine) -> None:
    client = Client(engine)

    async def once() -> None:
        await client.asubmit([plain()])
        await engine.aclose()

    asyncio.run(once())
    asyncio.run(once())

    assert len(client.list_jobs()) == 2
