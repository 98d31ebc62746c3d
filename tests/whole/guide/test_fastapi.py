"""docs/guide/fastapi.md runs as it stands: its blocks one after the other, one service, on both databases."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Annotated, Any
from uuid import UUID

import pytest
from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse
from httpx import ASGITransport, AsyncClient
from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from fencerow import App, Job, errors
from fencerow.testing import adrain, asubmitted, submitted
from tests.db.lenders import alchemy_connect_args, alchemy_url
from tests.house.tree import ROOT
from tests.whole.guide.test_sqlalchemy import url  # noqa: F401 (a fixture)

PAGE = (ROOT / "docs" / "guide" / "fastapi.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
SERVICE, LIFESPAN, WORKER, SUBMIT, RESULT, ERRORS, TESTS = BLOCKS
USED = (
    App, Job, AsyncIterator, AsyncSession, BaseModel, Depends, FastAPI, JSONResponse, Query, Request, Response, UUID,
    Annotated, Any, AsyncClient, ASGITransport, async_sessionmaker, asynccontextmanager, asubmitted,
)  # fmt: skip


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "placed_orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    sku: Mapped[str]
    state: Mapped[str] = mapped_column(default="placed")


async def played(block: str, names: dict[str, Any]) -> None:
    """Run a block as the page has it, with what the test and earlier blocks have named."""
    code = compile(block, "fastapi.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    if inspect.iscoroutine(running := eval(code, names)):  # noqa: S307 - our own page
        await running


@pytest.fixture
async def names(url: str) -> AsyncIterator[dict[str, Any]]:  # noqa: F811
    """The service of the page, on this database."""
    driver = "sqlite+aiosqlite" if url.startswith("sqlite") else "postgresql+asyncpg"
    where = alchemy_url(driver, url.removeprefix("sqlite:///"))
    engine = create_async_engine(where, connect_args=alchemy_connect_args(driver, url))
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    known: dict[str, Any] = {
        **{getattr(each, "__name__", str(each)): each for each in USED},
        **vars(errors),
        "Annotated": Annotated,
        "Any": Any,
        "Order": Order,
        "asyncio": asyncio,
        "pytest": SimpleNamespace(fixture=lambda function: function),
        "URL": url,
        "SQLALCHEMY_URL": where,
        "create_async_engine": lambda _url: engine,
    }
    for block in (SERVICE, LIFESPAN, WORKER, SUBMIT, RESULT, ERRORS, TESTS):
        await played(block, known)
    yield known
    await known["app"].aclose()
    await engine.dispose()


def browser(api: FastAPI) -> AsyncClient:
    return AsyncClient(transport=ASGITransport(api), base_url="http://test")


async def test_an_order_is_placed_shipped_and_asked_for(names: dict[str, Any]) -> None:
    async with names["lifespan"](names["api"]), browser(names["api"]) as client:
        placed = await client.post("/orders", json={"sku": "tent"})
        where = placed.headers["location"]
        waits = await client.get(where)
        await adrain(names["app"], check=True)
        found = await client.get(where, params={"wait_s": 5})

    assert (placed.status_code, waits.status_code, waits.json()) == (202, 202, {"state": "queued"})
    assert (found.status_code, found.json()) == (200, {"state": "succeeded", "result": "parcel 1"})


async def test_a_worker_inside_runs_it_and_stops_first(names: dict[str, Any]) -> None:
    async with names["lifespan_with_worker"](names["api"]), browser(names["api"]) as client:
        placed = await client.post("/orders", json={"sku": "tent"})
        found = await client.get(placed.headers["location"], params={"wait_s": 25})

    assert found.json()["result"] == "parcel 1"


async def test_errors_have_their_status(names: dict[str, Any]) -> None:
    api: FastAPI = names["api"]

    @api.get("/raise/{kind}")
    async def raises(kind: str) -> None:
        raise getattr(errors, kind)("found on host nowhere")

    async with browser(api) as client:
        gone = await client.get("/jobs/01a22840-077f-7372-ae6a-20c1e6bc8f39")
        kinds = ("KeyConflict", "Busy", "OutcomeUnknown", "ConfigError")
        told = {kind: await client.get(f"/raise/{kind}") for kind in kinds}

    assert (gone.status_code, gone.json()["code"]) == (404, "FR-301")
    assert {kind: each.status_code for kind, each in told.items()} == {
        "KeyConflict": 409, "Busy": 503, "OutcomeUnknown": 503, "ConfigError": 500,
    }  # fmt: skip
    assert (told["Busy"].headers["retry-after"], told["OutcomeUnknown"].json()["repeat"]) == ("5", "ask")
    assert "nowhere" not in told["Busy"].text and "nowhere" not in told["ConfigError"].text


async def test_an_order_whose_commit_fails_has_no_job(names: dict[str, Any]) -> None:
    api: FastAPI = names["api"]

    needed = Depends(names["get_session"], scope="function")

    @api.post("/broken", status_code=202)
    async def broken(session: Annotated[AsyncSession, needed]) -> None:
        await names["ship"].using(connection=session).asubmit(1)
        raise errors.InvalidInput("no", "no", "no")

    async with browser(api) as client:
        answer = await client.post("/broken")

    assert answer.status_code == 422
    assert await asubmitted(names["app"]) == []


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
async def test_a_test_of_the_page_is_rolled_back(names: dict[str, Any]) -> None:
    async with (
        asynccontextmanager(names["session"])() as session,
        asynccontextmanager(names["client"])(session) as client,
    ):
        await names["test_an_order_is_to_be_shipped"](client, session)
        assert await adrain(names["app"]) == []

    assert await asyncio.to_thread(submitted, names["app"]) == []
