"""What runs at night: a job of Fencerow's own, beside Django's tasks, with a schedule."""

from shop.models import Order

from fencerow.django import app


@app.job()
def count_orders() -> dict[str, int]:
    """How many orders there are, by state."""
    states = Order.objects.values_list("state", flat=True)
    return {state: list(states).count(state) for state in set(states)}


app.schedule(count_orders, cron="0 3 * * *")
