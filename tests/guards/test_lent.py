"""In the user's own transaction, on a connection of each driver: a commit is done, a rollback as if never begun."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.errors import OnceConflict, UnusableConnection
from fencerow.guards.once import DedupeWindow, OnceRun, once
from fencerow.guards.replace import Replacing, replace_for
from fencerow.guards.replace.deciding import Found
from tests.db.lenders import Loan
from tests.guards.places import At
from tests.kit.jobs import AnyEngine
from tests.kit.plainly import plainly

ROWS = [{"n": number, "text": f"chunk {number}"} for number in range(600)]


def table(engine: AnyEngine) -> str:
    return "fencerow.pieces" if engine.dialect == "postgres" else "pieces"


@pytest.fixture
def pieces(lent_engine: AnyEngine) -> str:
    name = table(lent_engine)
    with lent_engine.session() as session:
        session.connection.execute(f"CREATE TABLE {name} (source bigint, n integer, text text)")
    return name


def replacing(engine: AnyEngine, version: int) -> Replacing:
    return replace_for(
        At(engine), table=table(engine), source_column="source", source=7, version=version, wait_s=0
    )


def found(engine: AnyEngine) -> int:
    with engine.session() as session:
        (row,) = session.connection.execute(f"SELECT count(*) FROM {table(engine)}").fetchall()
        return int(row[0])


async def inserted(replacement: Replacing, loan: Loan, rows: list[dict[str, Any]]) -> bool:
    if loan.asynchronous:
        return await replacement.ainsert(rows, connection=loan.connection)
    return replacement.insert(rows, connection=loan.connection)


async def taken(replacement: Replacing, loan: Loan) -> bool:
    if loan.asynchronous:
        return await replacement.atake(connection=loan.connection)
    return replacement.take(connection=loan.connection)


async def ended(turn: OnceRun, loan: Loan) -> None:
    if loan.asynchronous:
        await turn.adone("paid", connection=loan.connection)
    else:
        turn.done("paid", connection=loan.connection)


async def test_rows_are_replaced_when_the_user_commits(
    loan: Loan, lent_engine: AnyEngine, pieces: str
) -> None:
    async with replacing(lent_engine, 1) as first:
        await loan.begin()
        assert await inserted(first, loan, ROWS)
        await loan.end("COMMIT")
    assert found(lent_engine) == 600

    async with replacing(lent_engine, 2) as second:
        await loan.sql(f"DELETE FROM {loan.table}")
        if not loan.autocommit:
            await loan.accept()
        await loan.begin()
        assert await inserted(second, loan, ROWS[:1])
        await loan.end("ROLLBACK")
        assert await inserted(second, loan, ROWS[:2]), "it may be tried again"
        if not loan.autocommit:
            await loan.accept()
    assert found(lent_engine) == 2
    async with replacing(lent_engine, 2) as third:
        assert third.found is Found.UNCHANGED


async def test_rows_of_ones_own_belong_to_ones_own_transaction(
    loan: Loan, lent_engine: AnyEngine, pieces: str
) -> None:
    async with replacing(lent_engine, 1) as first:
        if loan.autocommit:
            with pytest.raises(UnusableConnection, match="no transaction is open"):
                await taken(first, loan)
        await loan.begin()
        assert await taken(first, loan)
        await loan.sql(f"INSERT INTO {pieces} VALUES (7, 1, 'mine')")
        await loan.end("COMMIT")
    assert found(lent_engine) == 1

    async with replacing(lent_engine, 2) as late:
        async with replacing(lent_engine, 3) as newer:
            await newer.ainsert(ROWS[:3])
        await loan.sql(f"DELETE FROM {loan.table}")
        if not loan.autocommit:
            await loan.accept()
        await loan.begin()
        assert not await taken(late, loan)
        await loan.end("COMMIT")
    assert found(lent_engine) == 3


async def test_an_effect_and_its_mark_are_committed_together(loan: Loan, lent_engine: AnyEngine) -> None:
    at = At(lent_engine)
    for verb, is_needed_again in (("ROLLBACK", True), ("COMMIT", False)):
        try:
            async with once(at, "k") as turn:
                assert turn.needed
                await loan.begin()
                await ended(turn, loan)
                await loan.end(verb)
                if verb == "ROLLBACK":
                    raise RuntimeError("rolled back")
        except RuntimeError:
            pass
        async with once(at, "k") as again:
            assert again.needed is is_needed_again
            if is_needed_again:
                await again.arelease()
            else:
                assert again.result == "paid"


async def test_a_mark_that_was_rolled_back_gives_the_key_back(loan: Loan, lent_engine: AnyEngine) -> None:
    """Without an error: the block ends well, but the effect was undone."""
    at = At(lent_engine)
    async with once(at, "k", stale_s=600) as turn:
        await loan.begin()
        await ended(turn, loan)
        await loan.end("ROLLBACK")

    async with once(at, "k", stale_s=600) as again:
        assert again.needed
        await loan.begin()
        await ended(again, loan)
        await loan.end("COMMIT")
    async with once(at, "k") as third:
        assert (third.needed, third.result) == (False, "paid")


async def test_a_mark_whose_transaction_is_still_open_stands_when_it_is_committed(
    loan: Loan, lent_engine: AnyEngine, caplog: pytest.LogCaptureFixture
) -> None:
    """The look at the end of the block neither waits for the caller's own transaction nor takes anything from it."""
    guard = once(At(lent_engine), "k", stale_s=600)
    await loan.begin()
    if loan.engine.dialect == "sqlite":
        await loan.end("ROLLBACK")  # the file has one writer: the key is taken before
    turn = await guard.__aenter__()
    if loan.engine.dialect == "sqlite":
        await loan.begin()
    await ended(turn, loan)
    await guard.__aexit__(None, None, None)
    assert "not found out" not in caplog.text
    await loan.end("COMMIT")
    await lent_engine.aclose()

    async with once(At(lent_engine), "k") as again:
        assert (again.needed, again.result) == (False, "paid")


async def test_rows_that_were_rolled_back_leave_no_reservation(
    loan: Loan, lent_engine: AnyEngine, pieces: str
) -> None:
    async with replacing(lent_engine, 1) as first:
        await loan.begin()
        assert await inserted(first, loan, ROWS[:2])
        await loan.end("ROLLBACK")

    async with replacing(lent_engine, 1) as second:
        assert second.needed
        await second.ainsert(ROWS[:1])
    assert found(lent_engine) == 1


async def test_a_block_that_fails_in_an_open_transaction_gives_back_on_its_connection(
    loan: Loan, lent_engine: AnyEngine, pieces: str
) -> None:
    """Also where a sync connection was lent inside an event loop: the end of the async block uses it as such."""
    at = At(lent_engine)
    with pytest.raises(RuntimeError) as caught:
        async with once(at, "k", stale_s=600) as turn:
            await loan.begin()
            await ended(turn, loan)
            raise RuntimeError("too late")
    assert not hasattr(caught.value, "__notes__")
    await loan.end("ROLLBACK")

    with pytest.raises(RuntimeError) as caught:
        async with replacing(lent_engine, 1) as first:
            await loan.begin()
            assert await inserted(first, loan, ROWS[:2])
            raise RuntimeError("too late")
    assert not hasattr(caught.value, "__notes__")
    await loan.end("ROLLBACK")


async def test_what_belongs_to_a_transaction_is_refused_where_none_is_open(
    loan: Loan, lent_engine: AnyEngine
) -> None:
    if not loan.autocommit:
        return  # its driver begins one by itself
    at = At(lent_engine)
    window = DedupeWindow(at, "posts", 60)
    guard = once(at, "k", connection=loan.connection)
    with pytest.raises(UnusableConnection, match="no transaction is open"):
        if loan.asynchronous:
            await guard.__aenter__()
        else:
            guard.__enter__()
    async with once(at, "k") as turn:
        with pytest.raises(UnusableConnection, match="no transaction is open"):
            await ended(turn, loan)
        assert turn.is_open
    with pytest.raises(UnusableConnection, match="no transaction is open"):
        if loan.asynchronous:
            await window.aadmit("k", "job-1", connection=loan.connection)
        else:
            window.admit("k", "job-1", connection=loan.connection)
    assert (await window.aadmit("k", "job-2")).is_new


async def test_all_of_it_in_the_users_transaction(loan: Loan, lent_engine: AnyEngine) -> None:
    """Taken, done and marked in it; a refusal leaves the transaction as it was."""
    at = At(lent_engine)
    plainly(once(at, "other", fingerprint=1).call, lambda: 1)
    window = DedupeWindow(at, "posts", 60)
    for verb, is_new in (("ROLLBACK", True), ("COMMIT", True), ("COMMIT", False)):
        await loan.begin()
        guard = once(at, "k", connection=loan.connection)
        wrong = once(at, "other", fingerprint=2, connection=loan.connection)
        if loan.asynchronous:
            with pytest.raises(OnceConflict):
                await wrong.__aenter__()
            async with guard as turn:
                assert turn.needed is is_new
            admitted = await window.aadmit("k", "job-1", connection=loan.connection)
        else:
            with pytest.raises(OnceConflict):
                wrong.__enter__()
            with guard as turn:
                assert turn.needed is is_new
            admitted = window.admit("k", "job-1", connection=loan.connection)
        assert admitted.is_new is is_new
        await loan.sql(f"DELETE FROM {loan.table}")
        await loan.end(verb)
