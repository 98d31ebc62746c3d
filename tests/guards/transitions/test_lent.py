"""Moves inside the user's own transaction, on a connection of each driver: commit is so, rollback is never was."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.errors import RetryTransaction
from fencerow.guards.transitions import Move, Transitions
from tests.db.lenders import LENDERS, Loan
from tests.guards.transitions.tables import AtEngine, create, extractions, insert, sql
from tests.kit.jobs import AnyEngine

# One for each driver is enough to see how its refusal is told.
ON_POSTGRES = [lender for lender in LENDERS if lender.name in ("psycopg", "asyncpg", "session-psycopg")]


@pytest.fixture
def lent_table(lent_engine: AnyEngine) -> str:
    table = create(lent_engine)
    insert(lent_engine, table, "a", "b")
    return table


@pytest.fixture
def documents(lent_engine: AnyEngine, lent_table: str) -> Transitions:
    return extractions(AtEngine(lent_engine), lent_table)


async def move(documents: Transitions, loan: Loan, name: str, row_id: str, **given: Any) -> Any:
    if loan.asynchronous:
        return await documents.amove(name, row_id, connection=loan.connection, **given)
    return documents.move(name, row_id, connection=loan.connection, **given)


async def test_a_state_may_look_like_a_parameter(loan: Loan, lent_engine: AnyEngine) -> None:
    table = create(lent_engine, "CREATE TABLE {name} (id {text} PRIMARY KEY, status {text})", "odd")
    insert(lent_engine, table, "a", status="it's :new")
    odd = Transitions(
        AtEngine(lent_engine),
        table=table,
        column="status",
        states=["it's :new", "50% (:id)"],
        moves=[Move("go", "it's :new", "50% (:id)", where="status LIKE 'it%'")],
    )
    await loan.begin()

    assert await move(odd, loan, "go", "a") == {"id": "a", "status": "50% (:id)"}
    await loan.end("ROLLBACK")


def states(engine: AnyEngine, table: str) -> list[Any]:
    return sql(engine, f"SELECT id, status, attempts FROM {table} ORDER BY id")


async def every_verb(documents: Transitions, loan: Loan) -> list[Any]:
    """Each of them once, with a refusal first."""
    boxes, given = documents.sub("boxes"), {"connection": loan.connection}
    if loan.asynchronous:
        return [
            await documents.amove("succeed", "a", fence=7, **given),
            await documents.atake("claim", 1, **given),
            await documents.arenew("claim", "a", fence=1, values={"result": "half"}, **given),
            await documents.amove_or_why("cancel", "a", **given),
            await documents.afind_stuck(**given),
            await boxes.areap(**given),
            await documents.amove("succeed", "a", fence=1, values={"result": "x"}, **given),
        ]
    return [
        documents.move("succeed", "a", fence=7, **given),
        documents.take("claim", 1, **given),
        documents.renew("claim", "a", fence=1, values={"result": "half"}, **given),
        documents.move_or_why("cancel", "a", **given),
        documents.find_stuck(**given),
        boxes.reap(**given),
        documents.move("succeed", "a", fence=1, values={"result": "x"}, **given),
    ]


async def test_commit_makes_it_so_rollback_never_was_and_a_refusal_costs_nothing(
    documents: Transitions, loan: Loan, lent_engine: AnyEngine, lent_table: str
) -> None:
    await loan.begin()
    await every_verb(documents, loan)
    await loan.end("ROLLBACK")
    assert states(lent_engine, lent_table) == [("a", "queued", 0), ("b", "queued", 0)]

    await loan.begin()
    refused, taken, renewed, why, stuck, reaped, done = await every_verb(documents, loan)
    await loan.end("COMMIT")

    assert refused is None
    assert [row["id"] for row in taken] == ["a"]
    assert renewed["result"] == "half"
    assert (why.reason, why.state, why.row["result"]) == ("state", "running", "half")
    assert (stuck, reaped.more, done["result"]) == ([], False, "x")
    assert states(lent_engine, lent_table) == [("a", "succeeded", 1), ("b", "queued", 0)]
    assert await loan.sql(f"SELECT n FROM {loan.table}") == [(1,)]


@pytest.mark.parametrize("lender", ON_POSTGRES, indirect=True, ids=lambda lender: lender.name)
async def test_a_row_changed_since_the_snapshot_asks_for_a_new_transaction(
    documents: Transitions, loan: Loan
) -> None:
    await loan.snapshot("REPEATABLE READ")
    assert await documents.amove("claim", "a") is not None

    with pytest.raises(RetryTransaction):
        await move(documents, loan, "claim", "a")
    await loan.end("ROLLBACK")
