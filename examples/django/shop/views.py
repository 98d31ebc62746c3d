"""The shop's door: an order and the task that sends its receipt are stored together, or neither is."""

from typing import Any

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from shop.models import Order
from shop.tasks import send_receipt


@csrf_exempt  # for curl; a page of yours has a form with a token
@require_POST
@transaction.atomic
def buy(request: HttpRequest) -> JsonResponse:
    """Place an order."""
    order = Order.objects.create(sku=request.POST["sku"], email=request.POST["email"])
    order.receipt = send_receipt.enqueue(order.id).id
    order.full_clean()  # an address that is none undoes both
    order.save(update_fields=["receipt"])
    return JsonResponse({"order": order.id}, status=202)


def look(_request: HttpRequest, order_id: int) -> JsonResponse:
    """How an order stands, and its receipt."""
    order = get_object_or_404(Order, id=order_id)
    receipt: Any = send_receipt.get_result(order.receipt)
    said = receipt.return_value if receipt.is_finished and not receipt.errors else None
    return JsonResponse({"state": order.state, "receipt": receipt.status, "said": said})
