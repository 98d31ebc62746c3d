"""On a user's connection of every kind: commit is accepted, rollback is never was, and an error costs only our part."""

from __future__ import annotations

import pytest

from fencerow.core.model.submission import SubmitResult
from fencerow.core.store import store
from fencerow.db.borrow import borrowed
from fencerow.errors import IllegalMove, KeyConflict, UnusableConnection
from fencerow.operators import looking
from tests.db.lenders import LENDERS, Lender, Loan
from tests.db.work import claimed, keyed, seen
from tests.kit.asked import submit_keyed
from tests.kit.jobs import AnyEngine, new_job

pytestmark = pytest.mark.parametrize("lender", LENDERS, ids=lambda lender: lender.name)


async def mine(loan: Loan) -> list[int]:
    return [row[0] for row in await loan.sql(f"SELECT n FROM {loan.table}")]


@pytest.mark.parametrize("verb", ["submit", "resubmit", "submit_keyed"])
async def test_a_commit_accepts_the_job(loan: Loan, lent_engine: AnyEngine, verb: str) -> None:
    jobs, keys = keyed()
    await loan.begin()

    match verb:
        case "submit":
            assert await loan.run(store.submit(jobs)) == [jobs[0].id]
        case "resubmit":
            assert await loan.run(store.resubmit(jobs)) == [jobs[0].id]
        case _:
            assert await loan.run(submit_keyed(jobs, keys)) == [SubmitResult(jobs[0].id)]
    assert not seen(lent_engine, jobs[0].id)
    await loan.end("COMMIT")

    assert claimed(lent_engine) == [jobs[0].id]
    assert await mine(loan) == [1]


@pytest.mark.parametrize("with_key", [False, True])
async def test_after_a_rollback_the_job_never_was(loan: Loan, lent_engine: AnyEngine, with_key: bool) -> None:
    jobs, keys = keyed()
    await loan.begin()

    if with_key:
        await loan.run(submit_keyed(jobs, keys))
    else:
        await loan.run(store.submit(jobs))
    await loan.end("ROLLBACK")

    assert not seen(lent_engine, jobs[0].id)
    assert lent_engine.run(store.key_owner("s", "k")) is None


@pytest.mark.parametrize("with_key", [False, True])
async def test_without_an_open_transaction_it_does_as_the_driver_does(
    loan: Loan, lender: Lender, lent_engine: AnyEngine, with_key: bool
) -> None:
    jobs, keys = keyed()

    if with_key:
        await loan.run(submit_keyed(jobs, keys))
    else:
        await loan.run(store.submit(jobs))

    assert seen(lent_engine, jobs[0].id) is lender.autocommit
    if not lender.autocommit:
        await loan.accept()
    assert claimed(lent_engine) == [jobs[0].id]


async def test_the_first_submit_of_an_implicit_transaction_can_be_rolled_back(
    loan: Loan, lender: Lender, lent_engine: AnyEngine
) -> None:
    if lender.autocommit:
        pytest.skip("it is committed at once")
    job = new_job()

    await loan.run(store.submit([job]))
    await loan.forget()

    assert not seen(lent_engine, job.id)


async def test_the_same_key_gives_the_same_job(loan: Loan, lent_engine: AnyEngine) -> None:
    first, first_key = keyed()
    again, again_key = keyed()
    lent_engine.run(submit_keyed(first, first_key))
    await loan.begin()

    answer = await loan.run(submit_keyed(again, again_key))
    await loan.end("COMMIT")

    assert answer == [SubmitResult(first[0].id, replay=True)]
    assert claimed(lent_engine) == [first[0].id]


async def test_a_key_conflict_leaves_the_transaction_usable(loan: Loan, lent_engine: AnyEngine) -> None:
    lent_engine.run(submit_keyed(*keyed()))
    free, free_key = keyed("free")
    taken, taken_key = keyed(fingerprint="other")
    job = new_job()
    await loan.begin()

    with pytest.raises(KeyConflict):
        await loan.run(submit_keyed([*free, *taken], [*free_key, *taken_key]))
    await loan.sql(f"INSERT INTO {loan.table} VALUES (2)")
    await loan.run(store.submit([job]))
    await loan.end("COMMIT")

    assert await mine(loan) == [1, 2]
    assert seen(lent_engine, job.id)
    assert not seen(lent_engine, free[0].id)
    assert (
        lent_engine.run(store.key_owner("s", "free")) is None
    )  # reserved before the conflict, and taken back


async def test_a_key_conflict_outside_a_transaction_leaves_none_open(
    loan: Loan, lender: Lender, lent_engine: AnyEngine
) -> None:
    lent_engine.run(submit_keyed(*keyed()))

    with pytest.raises(KeyConflict):
        await loan.run(submit_keyed(*keyed(fingerprint="other")))

    if lender.autocommit:
        await loan.sql("BEGIN")  # would fail or warn inside a transaction
        await loan.sql("COMMIT")
    job = new_job()
    await loan.run(store.submit([job]))
    if not lender.autocommit:
        await loan.accept()
    assert seen(lent_engine, job.id)


async def test_cancel_revive_and_read_work_too(loan: Loan, lent_engine: AnyEngine) -> None:
    jobs, keys = keyed()
    lent_engine.run(submit_keyed(jobs, keys))
    await loan.begin()

    cancelled = await loan.run(store.cancel(jobs[0].id, actor="ada", reason="100% sure: :no \\"))
    there = await loan.run(store.read([jobs[0].id]))
    with pytest.raises(IllegalMove):
        await loan.run(store.cancel(jobs[0].id, actor=None))
    await loan.run(store.revive(jobs[0].id, actor="ada"))
    await loan.end("COMMIT")

    assert cancelled.moved is not None
    assert there[jobs[0].id].state == "cancelled"
    events = lent_engine.run(looking.events(jobs[0].id))
    assert [event.kind for event in events] == ["cancelled", "revived"]
    assert events[0].detail == {"reason": "100% sure: :no \\"}
    assert claimed(lent_engine) == [jobs[0].id]


async def test_the_wrong_twin_says_which_one_to_use(loan: Loan) -> None:
    loaned = borrowed(loan.connection, loan.engine)

    if loan.asynchronous:
        with pytest.raises(UnusableConnection, match="use the async verb"):
            loaned.run(store.clock())
    else:
        with pytest.raises(UnusableConnection, match="use the sync verb"):
            await loaned.arun(store.clock())


async def test_many_parameters_of_every_kind_arrive(loan: Loan, lent_engine: AnyEngine) -> None:
    jobs = [new_job('{"text":"it\'s 100% :ok \\\\ \u00fc"}', tags='["a"]', priority=-3) for _ in range(3)]
    await loan.begin()

    await loan.run(store.submit(jobs))
    found = await loan.run(looking.search(tags='["a"]', states=None, limit=2))
    nothing = await loan.run(store.read([]))
    await loan.end("COMMIT")

    assert [record.id for record in found.jobs] == sorted((job.id for job in jobs), reverse=True)[:2]
    assert nothing == {}
    assert lent_engine.run(store.read([jobs[0].id]))[jobs[0].id].args == {"text": "it's 100% :ok \\ \u00fc"}
