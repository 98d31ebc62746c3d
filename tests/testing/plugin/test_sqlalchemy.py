"""The recipe of docs/testing.md: the sessions of a service with SQLAlchemy work on the database of the test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.house.tree import ROOT
from tests.testing.plugin.conftest import OTHERS, Run

pytestmark = pytest.mark.prove

SHOP = """
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from fencerow import App, Job

app = App("postgresql://nobody@127.0.0.1:1/production")
make_session = async_sessionmaker(create_async_engine("postgresql+asyncpg://nobody@127.0.0.1:1/production"))


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    paid: Mapped[bool] = mapped_column(default=False)


@app.job
async def pay(job: Job, order_id: int) -> None:
    async with job.transaction(session=make_session) as session:
        (await session.get_one(Order, order_id)).paid = True


async def take_order() -> None:
    async with make_session.begin() as session:
        order = Order()
        session.add(order)
        await session.flush()
        await pay.using(connection=session).asubmit(order.id)
"""
TESTS = """
import pytest
import shop
from fencerow.testing import adrain


@pytest.mark.parametrize("number", [1, 2])
async def test_an_order_is_paid(number, fencerow_app, fencerow_database):
    await shop.take_order()
    await adrain(fencerow_app, check=True)

    assert fencerow_database.execute("SELECT id, paid FROM orders") == [(1, True)]
"""


def test_each_test_has_its_own_orders(tmp_path: Path, run: Run) -> None:
    page = (ROOT / "docs" / "testing.md").read_text("utf-8")
    (recipe,) = re.findall(r"^```python\n(# conftest\.py.+?)^```", page, re.MULTILINE | re.DOTALL)
    for name, text in (("shop", SHOP), ("test_orders", TESTS), ("conftest", recipe)):
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nfencerow_app = shop:app\nasyncio_mode = auto\nfilterwarnings = error\n"
        "asyncio_default_fixture_loop_scope = function\n"
    )

    done = run(tmp_path, "-q", without=[name for name in OTHERS if name != "asyncio"])

    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
