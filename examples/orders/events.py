"""Who hears of what was shipped: the sales of each article, kept from the events alone."""

from __future__ import annotations

from examples.orders.models import Sales, app, make_session
from fencerow.events import Event, consumer


@consumer(app, group="sales", topics=["order.shipped"], start="beginning", partitions=4)
async def count_sales(event: Event) -> None:
    """One event, applied once: the sums and the acknowledgement are one commit."""
    news = event.data
    async with event.transaction(session=make_session) as session:
        sales = await session.get(Sales, news["sku"])
        if sales is None:
            session.add(sales := Sales(sku=news["sku"], orders=0, quantity=0, cents=0))
        sales.orders += 1  # safe: events of one key, here the article, come one after the other
        sales.quantity += news["quantity"]
        sales.cents += news["cents"]
