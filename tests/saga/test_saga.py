"""What a job has done is undone in reverse by one job, if it ends without success; bad use is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any

import pytest

from fencerow import App, Fail, Job
from fencerow.batches import BatchItem
from fencerow.core.config import CoreConfig
from fencerow.core.model.ids import new_id
from fencerow.core.model.wakeup import JobsEnded, decode
from fencerow.core.store import store
from fencerow.errors import InvalidSaga, RevivedTooSoon, StepNotPossible, UndoNotPossible
from fencerow.operators.many import JobDone, ReviveMany, moving
from fencerow.payloads import Seal
from fencerow.saga.checks import examine_sagas
from fencerow.saga.storing import NOWHERE, purge, sagas_of
from fencerow.steps.approvals import answering, ticket_of
from fencerow.steps.verifying import recorded, verified
from fencerow.testing import adrain, drain
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.core.store.stage import rows, table
from tests.events.conftest import app_on, url_of
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S
from tests.saga.stage import Shop

cli = command_line.cli  # a fixture
DONE, UNDONE = ["charge 5", "pack"], ["unpack box 7", "refund 5"]


def kinds(engine: AnyEngine, job_id: str) -> list[str]:
    found = rows(engine, f"SELECT kind FROM {{job_events}} WHERE job_id = '{job_id}' ORDER BY id")
    return [str(each["kind"]) for each in found]


def test_a_job_that_fails_is_undone_in_reverse(shop: Shop, engine: AnyEngine, cli: Cli) -> None:
    failed, well = shop.order.submit("fail"), shop.order.submit("well")

    drain(shop.app)

    (saga,) = engine.run(sagas_of(failed.id))
    assert failed.status() == "failed"
    assert sorted(shop.heard[:4]) == sorted(2 * DONE)
    assert shop.heard[4:] == UNDONE
    assert shop.app.client.handle(saga.undo_id).result(0) == ["pack", "charge"]
    assert "compensating" in kinds(engine, failed.id)
    assert well.result(0) == "well"
    assert [each.ended_at_us for each in engine.run(sagas_of(well.id))] == [None]
    url = url_of(engine)
    assert cli("jobs", "show", failed.id, "--url", url).code == 0
    shown = cli("saga", failed.id, "--url", url).out
    assert saga.undo_id in shown
    record = recorded(cli("steps", "show", well.id, "--json", "--url", url).out.encode(), "history.json")
    assert verified(shop.app, record).agrees
    assert [line.split()[:2] for line in shown.splitlines()[-2:]] == [
        ["pack", "unpack"],
        ["charge", "refund"],
    ]


def test_a_step_whose_effects_were_committed_with_its_memory_is_undone_first(shop: Shop) -> None:
    shop.order.submit("book")

    drain(shop.app)

    assert shop.heard == [*DONE, "book 9", "unbook 9", *UNDONE]


def test_what_is_undone_of_a_sealed_job_is_kept_sealed_and_read_by_its_undo(engine: AnyEngine) -> None:
    heard: list[str] = []

    def charge() -> str:
        return "card of Ada"

    def refund(card: str) -> None:
        heard.append(f"refund {card}")

    with App(url_of(engine), seal=Seal({"k": b"1" * 32}, marks=b"m" * 32)) as app:

        @app.job(attempts_max=1)
        def order(job: Job) -> None:
            job.step("charge", charge, undo=refund)
            raise Fail("out of stock")

        app.saga(order, undo=[refund])
        order.submit()
        drain(app)

    kept = str(rows(engine, f"SELECT * FROM {table(engine, 'saga_steps')}"))
    assert heard == ["refund card of Ada"]
    assert "refund" in kept and "card of Ada" not in kept


def test_a_job_that_is_cancelled_while_it_sleeps_is_undone(shop: Shop) -> None:
    sleeping = shop.order.submit("sleep")
    drain(shop.app)
    assert shop.heard == DONE

    sleeping.cancel()
    drain(shop.app)

    assert shop.heard == [*DONE, *UNDONE]


def test_a_compensation_that_fails_is_told_and_goes_on_when_it_is_revived(
    shop: Shop, engine: AnyEngine
) -> None:
    shop.refuses = 1
    failed = shop.order.submit("fail")
    drain(shop.app)
    (saga,) = engine.run(sagas_of(failed.id))
    assert saga.state == "failed"
    (found,) = examine_sagas(engine, CoreConfig())
    assert saga.undo_id in found.found

    shop.app.client.revive(saga.undo_id)
    drain(shop.app)

    assert shop.heard == [*DONE, *UNDONE]
    assert not list(examine_sagas(engine, CoreConfig()))


def test_a_job_that_is_revived_after_its_compensation_begins_anew(shop: Shop, engine: AnyEngine) -> None:
    failed = shop.order.submit("fail")
    drain(shop.app)

    failed.revive()
    drain(shop.app)

    assert shop.heard == 2 * [*DONE, *UNDONE]
    assert kinds(engine, failed.id).count("begins_anew") == 1
    assert [each.anew for each in engine.run(sagas_of(failed.id))] == [False, True]


def test_a_job_and_its_compensation_are_never_revived_beside_each_other(
    shop: Shop, engine: AnyEngine
) -> None:
    client = shop.app.client
    sleeping = shop.order.submit("sleep")
    drain(shop.app)
    sleeping.cancel()
    with pytest.raises(RevivedTooSoon, match=engine.run(sagas_of(sleeping.id))[0].undo_id):
        sleeping.revive()

    shop.refuses = 1
    failed = shop.order.submit("fail")
    drain(shop.app)
    undo_id = engine.run(sagas_of(failed.id))[0].undo_id
    failed.revive()
    with pytest.raises(RevivedTooSoon, match=failed.id):
        client.revive(undo_id)

    failed.cancel()
    done: list[JobDone] = []
    client.run(moving([failed.id, undo_id], ReviveMany(None, None), done))
    assert {each.id: type(each.error) for each in done} == {failed.id: RevivedTooSoon, undo_id: NoneType}


def test_a_job_that_begins_anew_is_told_anew(shop: Shop, engine: AnyEngine) -> None:
    """What its first run was told is no answer to what the second one asks, and whoever answered may answer again."""
    asking, client = shop.order.submit("ask"), shop.app.client

    for said in (True, False):
        asked = client.approval(asking.id, "told", "Well?", base_url="https://jobs.example.com")
        drain(shop.app)
        client.run(answering(ticket_of(asked.address.rpartition("/")[2]), yes=said, actor=None))
        drain(shop.app)
        assert asking.status() == "failed"
        asking.revive()

    assert [each for each in shop.heard if each.startswith("told")] == ["told True", "told False"]


def test_what_nobody_needs_is_purged(shop: Shop, engine: AnyEngine) -> None:
    failed = shop.order.submit("fail")
    drain(shop.app)
    engine.run(purge(NOWHERE, limit=9))
    (saga,) = engine.run(sagas_of(failed.id))
    for each in (failed.id, saga.undo_id):
        shop.app.client.delete(each)

    engine.run(purge(NOWHERE, limit=9))

    assert engine.run(sagas_of(failed.id)) == []


@pytest.mark.parametrize(("word", "kind"), [("stranger", UndoNotPossible), ("inside", StepNotPossible)])
def test_an_undo_where_none_can_be_fails_the_job(shop: Shop, word: str, kind: Any) -> None:
    wrong = shop.order.submit(word)
    drain(shop.app)

    with pytest.raises(Exception, match=kind.code):
        wrong.result(0)
    assert shop.heard == ([] if word == "stranger" else ["charge 5", "refund 5"])


async def two(first: str, second: str) -> None: ...


@pytest.mark.parametrize("undo", [[], [lambda result: None], [two], "refund"])
def test_a_saga_of_what_cannot_undo_is_refused(shop: Shop, undo: Sequence[Callable[[Any], Any]]) -> None:
    @shop.app.job
    async def other(job: Job) -> None: ...

    @shop.app.batch_job
    async def batch(items: Sequence[BatchItem[int, int]]) -> None: ...

    for match, job, functions in (
        ("app.saga", other, undo),
        ("two functions", other, [shop.refund, shop.refund]),
        ("batch", batch, [shop.refund]),
        ("already", shop.order, [shop.refund]),
    ):
        with pytest.raises(InvalidSaga, match=match) as refused:
            shop.app.saga(job, undo=functions)
        assert "-" not in refused.value.lines(), "what was found, what is expected, what to do"


def test_the_saga_of_a_job_that_is_nowhere_is_not_taken_for_none(
    shop: Shop, engine: AnyEngine, cli: Cli
) -> None:
    url = url_of(engine)
    plain = shop.undo.submit()

    assert "no step of it can be undone" in cli("saga", plain.id, "--url", url).out
    unknown = cli("saga", new_id(), "--url", url)

    assert unknown.code == 1
    assert "FR-301" in unknown.err


async def test_a_compensation_starts_without_a_poll(engine: AnyEngine) -> None:
    async with app_on(engine, poll_max_s=300.0, poll_min_s=60.0) as app:
        shop = Shop(app)
        sleeping = await shop.order.asubmit("sleep")
        await adrain(app)
        heard: list[str | None] = []
        forget = app.engine.listen(heard.append)
        well = await shop.order.asubmit("well")
        await app.engine.arun(store.mark_awaited([well.id]))  # else its end is told only if it comes late
        async with app.worker(slots=1):
            await well.aresult(PATIENCE_S)
            await sleeping.acancel()
            (saga,) = await app.engine.arun(sagas_of(sleeping.id))
            undone = await app.client.handle(saga.undo_id).aresult(45)  # a poll comes within 60 to 300 s
        await asyncio.to_thread(forget)

    assert undone == ["pack", "charge"]
    ends = [each for each in map(decode, filter(None, heard)) if isinstance(each, JobsEnded)]
    assert {each.succeeded for each in ends if well.id in each.ids} == {True}
    assert {each.succeeded for each in ends if sleeping.id in each.ids} == {False}
