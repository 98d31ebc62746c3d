"""The shop's door: an order is answered with 202 when it is stored together with its first job, and not before."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from typing import Annotated

from fastapi import Depends, FastAPI, Header, HTTPException
from pydantic import BaseModel, Field
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from examples.orders import jobs, payments
from examples.orders.models import (
    Base,
    Invoice,
    Item,
    Order,
    Report,
    Sales,
    StockCount,
    app,
    engine,
    make_session,
)
from fencerow.errors import KeyConflict

SHELVES = {"tent": 45_000, "stove": 8_900, "lamp": 2_500, "rope": 1_200}
DELIVERED = 1_000


class NewOrder(BaseModel):
    sku: str
    quantity: int = Field(ge=1, le=100)
    email: str


class Accepted(BaseModel):
    order: str
    new: bool  # false: this order was accepted before


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """Tables and goods for a first run; a real service has `fencerow migrate`, Alembic, and a provider that is real."""
    provider = None if "PAYMENTS_URL" in os.environ else payments.serve(payments.Books(), 8001)
    await asyncio.to_thread(app.check_or_create)
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    async with make_session.begin() as session:
        if not (await session.scalars(select(Item))).all():
            session.add_all(
                Item(sku=sku, cents=cents, delivered=DELIVERED, on_shelf=DELIVERED)
                for sku, cents in SHELVES.items()
            )
    yield
    if provider is not None:
        await asyncio.to_thread(provider.shutdown)
        provider.server_close()
    await app.aclose()
    await engine.dispose()


api = FastAPI(title="Orders", lifespan=lifespan)


async def get_session() -> AsyncIterator[AsyncSession]:
    """A session whose transaction is committed before the answer is sent, and rolled back after an error."""
    async with make_session.begin() as session:
        yield session


# Without scope="function" FastAPI commits after the answer: the client would hear of an order that may not be stored.
InSession = Annotated[AsyncSession, Depends(get_session, scope="function")]


@api.post("/orders", status_code=202)
async def place(new: NewOrder, session: InSession, idempotency_key: Annotated[str, Header()]) -> Accepted:
    """Accept an order. The same key again is the same order; with other goods it is refused."""
    if new.sku not in SHELVES:
        raise HTTPException(422, f"there is no {new.sku}; the shop has {', '.join(SHELVES)}")
    first = jobs.reserve_stock.using(key=idempotency_key, connection=session)
    try:
        handle = await first.asubmit(idempotency_key, new.sku, new.quantity)
    except KeyConflict as conflict:
        raise HTTPException(409, "another order has this key") from conflict
    if not handle.replay:
        cents = SHELVES[new.sku] * new.quantity
        session.add(
            Order(
                id=idempotency_key,
                sku=new.sku,
                quantity=new.quantity,
                cents=cents,
                email=new.email,
                state="placed",
            )
        )
    return Accepted(order=idempotency_key, new=not handle.replay)


@api.get("/orders/{order_id}")
async def look(order_id: str, session: InSession) -> dict[str, object]:
    order = await session.get(Order, order_id)
    if order is None:
        raise HTTPException(404, f"there is no order {order_id}")
    invoice = await session.get(Invoice, order_id)
    return {"state": order.state, "parcel": order.parcel, "invoice": invoice is not None}


@api.post("/orders/{order_id}/refund", status_code=202)
async def give_back(order_id: str, session: InSession) -> dict[str, object]:
    """Pay a shipped order back. Asked twice, it is one refund."""
    # First the write, then the read: so a transaction on SQLite waits for its turn. The error undoes the submit.
    handle = await jobs.refund.using(key=order_id, connection=session).asubmit(order_id)
    order = await session.get(Order, order_id)
    if order is None or order.state not in ("shipped", "refunded"):
        raise HTTPException(409, "only what was shipped can be given back")
    return {"job": str(handle.id), "new": not handle.replay}


@api.post("/stock-counts", status_code=202)
async def count(session: InSession) -> dict[str, object]:
    handle = await jobs.count_stock.using(connection=session).asubmit()
    return {"job": str(handle.id)}


@api.post("/reports/{day}", status_code=202)
async def report(day: date, session: InSession) -> dict[str, object]:
    handle = await jobs.daily_report.using(connection=session).asubmit(day.isoformat())
    return {"job": str(handle.id)}


@api.get("/sales")
async def sales(session: InSession) -> dict[str, dict[str, int]]:
    """What the consumer of events has counted."""
    found = await session.scalars(select(Sales))
    return {
        each.sku: {"orders": each.orders, "quantity": each.quantity, "cents": each.cents} for each in found
    }


@api.get("/stock-counts/{count_id}")
async def counted(count_id: str, session: InSession) -> dict[str, dict[str, int]]:
    found = await session.scalars(select(StockCount).where(StockCount.count == count_id))
    return {each.sku: {"on_shelf": each.on_shelf, "missing": each.missing} for each in found}


@api.get("/reports/{day}")
async def reported(day: date, session: InSession) -> dict[str, int]:
    found = await session.get(Report, day.isoformat())
    if found is None:
        raise HTTPException(404, f"there is no report of {day} yet")
    return {"shipped": found.shipped, "cents": found.cents}
