"""The shop's own tests: `python manage.py test`."""

from django.core.exceptions import ValidationError
from django.test import TestCase, TransactionTestCase
from shop.models import Order

from fencerow.django.worker import app
from fencerow.testing import drain, submitted


class PlacingTests(TestCase):
    """Each is rolled back, with what it has enqueued."""

    def test_an_order_has_its_receipt_enqueued(self) -> None:
        order = self.client.post("/orders/", {"sku": "tent", "email": "ann@example.org"}).json()["order"]

        found = self.client.get(f"/orders/{order}/").json()
        self.assertEqual(found, {"state": "placed", "receipt": "READY", "said": None})


class SendingTests(TransactionTestCase):
    """These commit, so a worker sees what they have enqueued."""

    def test_a_receipt_is_sent(self) -> None:
        order = self.client.post("/orders/", {"sku": "tent", "email": "ann@example.org"}).json()["order"]
        drain(app, check=True)

        found = self.client.get(f"/orders/{order}/").json()
        self.assertEqual(
            found, {"state": "receipted", "receipt": "SUCCESSFUL", "said": "sent to ann@example.org"}
        )

    def test_a_mail_server_that_is_down_is_tried_again(self) -> None:
        order = self.client.post("/orders/", {"sku": "tent", "email": "down@example.org"}).json()["order"]
        ran = drain(app)

        self.assertEqual([attempt.outcome for attempt in ran], ["retried"])
        self.assertEqual(self.client.get(f"/orders/{order}/").json()["receipt"], "READY")

    def test_an_address_that_is_none_leaves_neither_an_order_nor_a_task(self) -> None:
        before = len(submitted(app))
        with self.assertRaises(ValidationError):
            self.client.post("/orders/", {"sku": "tent", "email": "nobody"})

        self.assertEqual((Order.objects.count(), len(submitted(app))), (0, before))
