"""A statement composed for a user's own table: the columns' names and types hold, on our pool and when lent."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from fencerow.db.queries import Query
from fencerow.db.run import Operation, Steps, execute_composed
from tests.db.lenders import Loan
from tests.kit.jobs import AnyEngine

ID = UUID("01890000-0000-7000-8000-000000000001")

WRITE = "INSERT INTO fencerow.rows_of_mine (id, n, at) VALUES (:id, :n, fencerow.now()) RETURNING *"


def writing(query: Query, **params: Any) -> Operation[list[dict[str, Any]]]:
    def steps() -> Steps[list[dict[str, Any]]]:
        return (yield from execute_composed(query, params))

    return Operation("write", steps)


def table(engine: AnyEngine) -> None:
    kinds = ("uuid", "timestamptz") if engine.dialect == "postgres" else ("text", "integer")
    where = "fencerow.rows_of_mine" if engine.dialect == "postgres" else "fencerow_rows_of_mine"
    with engine.session() as session:
        session.connection.execute(
            f"CREATE TABLE {where} (id {kinds[0]} PRIMARY KEY, n bigint, at {kinds[1]})"
        )


async def test_rows_come_back_by_name_on_every_kind_of_connection(loan: Loan, lent_engine: AnyEngine) -> None:
    table(lent_engine)
    query = lent_engine.queries.composed("write", WRITE)
    # asyncpg takes a UUID or its text for a uuid column, as the others do.
    (row,) = await loan.run(writing(query, id=str(ID), n=2**40))

    assert list(row) == ["id", "n", "at"]
    assert (str(row["id"]), row["n"]) == (str(ID), 2**40)
    if not loan.autocommit:
        await loan.end("COMMIT")


async def test_our_own_pool_gives_the_same_sync_and_async(engine: AnyEngine) -> None:
    table(engine)
    query = engine.queries.composed("write", WRITE)
    nothing = engine.queries.composed(
        "none", "UPDATE fencerow.rows_of_mine SET n = n + :by WHERE n < 0 RETURNING *"
    )

    (first,) = engine.run(writing(query, id=str(ID), n=1))
    (second,) = await engine.arun(writing(query, id=str(UUID(int=7)), n=2))

    assert list(first) == list(second) == ["id", "n", "at"]
    assert engine.run(writing(nothing, by=1)) == []


def test_a_guard_of_a_composed_query_can_be_taken_out(engine: AnyEngine) -> None:
    query = engine.queries.composed("move", "UPDATE t SET n = :n WHERE id = :id AND state = 'a' RETURNING *")
    assert query.altered(" AND state = 'a'", "").statements == (
        "UPDATE t SET n = :n WHERE id = :id RETURNING *",
    )
