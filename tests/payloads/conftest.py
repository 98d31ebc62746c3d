"""Apps that seal or sign, each on a fresh database of each kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest

from fencerow import App
from fencerow.payloads import PayloadSeal, PayloadSign, Seal, Sign
from tests.core.app.conftest import url as url

K1, K2, MARKS = b"1" * 32, b"2" * 32, b"m" * 32
SEALS: dict[str, Callable[..., PayloadSeal | PayloadSign]] = {
    "seal": lambda **more: Seal({"k1": K1}, marks=MARKS, **more),
    "sign": lambda **more: Sign({"k1": K1}, **more),
}
ROTATED: dict[str, Callable[..., PayloadSeal | PayloadSign]] = {
    "seal": lambda *ids, **more: Seal(
        {each: {"k1": K1, "k2": K2}[each] for each in ids}, marks=MARKS, **more
    ),
    "sign": lambda *ids, **more: Sign({each: {"k1": K1, "k2": K2}[each] for each in ids}, **more),
}


@pytest.fixture(params=["seal", "sign"])
def how(request: pytest.FixtureRequest) -> str:
    """Whether payloads are sealed or signed."""
    made: str = request.param
    return made


@pytest.fixture
async def app(url: str, how: str) -> AsyncIterator[App]:
    async with App(url, actor="ada", seal=SEALS[how]()) as made:
        yield made


def stored(app: App, job_id: str) -> dict[str, Any]:
    """The row of a job as it lies in the database: the texts of its arguments and its result."""
    lite = app.engine.dialect == "sqlite"
    for table in ("jobs", "finished_jobs"):
        name = f"fencerow_{table}" if lite else f"fencerow.{table}"
        cast = "" if lite else "::text"
        with app.engine.session() as session:
            row = session.connection.execute(
                f"SELECT args{cast}, result{cast}, error{cast} FROM {name} WHERE id = '{job_id}'"
                if table == "finished_jobs"
                else f"SELECT args{cast}, NULL, NULL FROM {name} WHERE id = '{job_id}'"
            ).fetchone()
        if row is not None:
            return {"args": row[0], "result": row[1], "error": row[2]}
    raise AssertionError(f"no job {job_id}")


def write(app: App, job_id: str, column: str, text: str, table: str = "jobs") -> None:
    """What somebody with the rights to do so writes into a job's row."""
    lite = app.engine.dialect == "sqlite"
    name = f"fencerow_{table}" if lite else f"fencerow.{table}"
    quoted = text.replace("'", "''")
    with app.engine.session() as session:
        session.connection.execute(f"UPDATE {name} SET {column} = '{quoted}' WHERE id = '{job_id}'")


def of(text: str) -> dict[str, Any]:
    """A sealed or signed payload, as it is stored."""
    found: dict[str, dict[str, Any]] = msgspec.json.decode(text)
    ((name, inner),) = found.items()
    assert name in ("fencerow:sealed", "fencerow:signed")
    return {"name": name, **inner}
