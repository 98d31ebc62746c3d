"""Ten kinds of jobs: what happens to an order after it was accepted, and what the shop does beside.

The steps of an order write their effects, the order's next state and the next job in one commit with their own
success. So a worker that is killed leaves either all of a step or nothing of it, and the step is done again. A mail
and a count of the stock commit by themselves first; both may be repeated.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from examples.orders.models import Invoice, Item, Order, Report, StockCount, app, make_session, order_moves
from examples.orders.outside import Declined, pay, post_mail
from fencerow import Fail, Job
from fencerow.events import apublish
from fencerow.guards.mutex import Mutex
from fencerow.guards.once import once
from fencerow.guards.transitions import Refusal

LEAVES_THE_SHELF = ("reserved", "authorised", "captured", "packed", "shipped")


@app.job(queue="orders")
async def reserve_stock(job: Job, order_id: str, sku: str, quantity: int) -> str:
    """Take the goods from the shelf, or say that they are sold out."""
    async with job.transaction(session=make_session) as session:
        taken = update(Item).where(Item.sku == sku, Item.on_shelf >= quantity).returning(Item.sku)
        if await session.scalar(taken.values(on_shelf=Item.on_shelf - quantity)) is None:
            await move(session, "sell_out", order_id)
            await send_mail.using(connection=session).asubmit(order_id, "sold out")
            return "sold out"
        await move(session, "reserve", order_id)
        await authorise_payment.using(connection=session).asubmit(order_id)
    return "reserved"


@app.job(queue="orders", timeout_s=60)
async def authorise_payment(job: Job, order_id: str) -> str:
    """Ask the provider whether the card is good for it. A declined card puts the goods back."""
    order = await read(order_id)
    try:
        payment = await pay("authorise", order_id, order.cents)
    except Declined:
        payment = None
    async with job.transaction(session=make_session) as session:
        if payment is None:
            await move(session, "decline", order_id)
            await put_back(session, order)
            await send_mail.using(connection=session).asubmit(order_id, "declined")
            return "declined"
        await move(session, "authorise", order_id, payment=payment)
        await capture_payment.using(connection=session).asubmit(order_id)
    return payment


@app.job(queue="orders", timeout_s=60)
async def capture_payment(job: Job, order_id: str) -> None:
    """Take the money. If we die after that, the next attempt asks again under the same key, and pays nothing twice."""
    order = await read(order_id)
    await pay("capture", order_id, order.cents)
    async with job.transaction(session=make_session) as session:
        await move(session, "capture", order_id)
        await make_invoice.using(connection=session).asubmit(order_id)
        await pack.using(connection=session).asubmit(order_id)


@app.job(queue="office")
async def make_invoice(job: Job, order_id: str) -> None:
    async with job.transaction(session=make_session) as session:
        order = await session.get_one(Order, order_id)
        session.add(Invoice(order_id=order_id, cents=order.cents))


@app.job(queue="orders")
async def pack(job: Job, order_id: str) -> None:
    async with job.transaction(session=make_session) as session:
        await move(session, "pack", order_id)
        await ship.using(connection=session).asubmit(order_id)


@app.job(queue="orders", priority=10)
async def ship(job: Job, order_id: str) -> str:
    """Send the parcel off, and tell whoever wants to know: the event exists if, and only if, the parcel does."""
    parcel, today = f"parcel-{order_id}", datetime.now(UTC).date().isoformat()
    async with job.transaction(session=make_session) as session:
        order = await move(session, "ship", order_id, parcel=parcel, shipped_on=today)
        news = {
            "order": order_id,
            "sku": order["sku"],
            "quantity": order["quantity"],
            "cents": order["cents"],
        }
        await apublish(app, "order.shipped", news, key=order["sku"], connection=session)
        await send_mail.using(connection=session).asubmit(order_id, "shipped")
    return parcel


@app.job(queue="office")
async def send_mail(order_id: str, subject: str) -> str:
    """Send a mail about an order, once: also if somebody submits this job again, or revives it."""
    order = await read(order_id)
    return await once(app, f"mail:{order_id}:{subject}").acall(post_mail, order.email, subject)


@app.job(queue="office", timeout_s=60)
async def refund(job: Job, order_id: str) -> None:
    """Pay back what was shipped, and put the goods back on the shelf."""
    order = await read(order_id)
    await pay("refund", order_id, order.cents)
    async with job.transaction(session=make_session) as session:
        await move(session, "refund", order_id)
        await put_back(session, order)
        await send_mail.using(connection=session).asubmit(order_id, "refunded")


@app.job(queue="office")
async def count_stock(job: Job) -> int:
    """Count every shelf; returns how much is missing. One count at a time: two at once would disturb each other.

    It commits inside the mutex, so before its own success. Done again, it replaces the rows that carry its id.
    """
    async with Mutex(app, "stock-count", busy="snooze") as held, make_session.begin() as session:
        await held.aguard(session)  # a count that has lost the mutex meanwhile writes nothing
        sold = select(Order.sku, func.sum(Order.quantity).label("quantity"))
        sold_of = sold.where(Order.state.in_(LEAVES_THE_SHELF)).group_by(Order.sku).subquery()
        missing = Item.delivered - Item.on_shelf - func.coalesce(sold_of.c.quantity, 0)
        found = await session.execute(
            select(Item.sku, Item.on_shelf, missing).join(sold_of, Item.sku == sold_of.c.sku, isouter=True)
        )
        counts = [
            StockCount(count=str(job.id), sku=sku, on_shelf=there, missing=gone) for sku, there, gone in found
        ]
        for each in counts:
            await session.merge(each)
    return sum(each.missing for each in counts)


@app.job(queue="office")
async def daily_report(job: Job, day: str) -> None:
    """What was shipped on a day. Made again, it replaces the one that was there."""
    async with job.transaction(session=make_session) as session:
        of_day = select(func.count(), func.coalesce(func.sum(Order.cents), 0)).where(Order.shipped_on == day)
        shipped, cents = (await session.execute(of_day)).one()
        await session.merge(Report(day=day, shipped=shipped, cents=cents))


async def read(order_id: str) -> Order:
    """The order as it is now; no transaction stays open while we talk to the world outside."""
    async with make_session() as session:
        return await session.get_one(Order, order_id)


async def move(session: AsyncSession, name: str, order_id: str, **values: object) -> dict[str, Any]:
    """Move the order on. If it is not where this step begins, somebody else has moved it: undo the step and say so."""
    moved = await order_moves.amove_or_why(name, order_id, values=values or None, connection=session)
    if isinstance(moved, Refusal):
        raise Fail(f"cannot {name} {order_id}: it is {moved.state or 'gone'}")
    return moved


async def put_back(session: AsyncSession, order: Order) -> None:
    shelf = update(Item).where(Item.sku == order.sku)
    await session.execute(shelf.values(on_shelf=Item.on_shelf + order.quantity))
