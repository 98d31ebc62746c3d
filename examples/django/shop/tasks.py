"""What happens to an order after it was placed. Each may run twice, if a worker dies in it, and then does no harm."""

from django.conf import settings
from shop.models import Order

try:
    from django.tasks import task
except ImportError:  # Django 5.2, with the backport
    from django_tasks import task


class MailIsDown(ConnectionError):
    """The mail server does not answer: the task is tried again."""


@task(queue_name="mail")
def send_receipt(order_id: int) -> str:
    """Send the receipt of an order. A mail is a line in a file here."""
    order = Order.objects.get(id=order_id)
    if order.state == "receipted":
        return "sent before"
    if order.email.startswith("down@"):
        raise MailIsDown(f"nobody answers for {order.email}")
    with settings.MAILS.open("a") as file:
        file.write(f"{order.email}: your {order.sku}\n")
    Order.objects.filter(id=order_id).update(state="receipted")
    return f"sent to {order.email}"
