"""docs/guide/django.md runs as it stands: its blocks one after the other, in one module of a project."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.asgi import get_asgi_application
from django.db import transaction
from django.http import JsonResponse
from django.test import TransactionTestCase

import fencerow
from fencerow import Backoff
from fencerow.django.following import DjangoApp
from fencerow.errors import MissingExtra
from fencerow.testing import drain, submitted
from tests.house.tree import ROOT

try:
    from tests.django import tasks
except ImportError:
    pytest.skip("this Django has no tasks, and django-tasks is not installed", allow_module_level=True)
except MissingExtra:
    pytest.skip("this Django has no tasks, and django-tasks is not installed", allow_module_level=True)

PAGE = (ROOT / "docs" / "guide" / "django.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_its_blocks_run(sqlite_alias: str, app: DjangoApp) -> None:
    orders = SimpleNamespace(create=lambda sku: SimpleNamespace(id=7, sku=sku))
    known: dict[str, Any] = {
        "__name__": "tests.django.test_guide",
        "Order": SimpleNamespace(objects=orders),
        "Backoff": Backoff,
        "JsonResponse": JsonResponse,
        "TransactionTestCase": TransactionTestCase,
        "drain": drain,
        "fencerow": fencerow,
        "get_asgi_application": get_asgi_application,
        "transaction": transaction,
    }
    installed = f"from {type(tasks.add).__mro__[1].__module__.removesuffix('.base')} import task"
    for block in BLOCKS:
        exec(compile(block.replace("from django.tasks import task", installed), "django.md", "exec"), known)  # noqa: S102
    known["buy"](SimpleNamespace(POST={"sku": "tent"}))

    assert [each.name for each in submitted(app)] == ["restock", "tests.django.test_guide.send_receipt"]
    assert known["call_the_bank"].options["attempts_max"] == 10
    assert known["Receipts"]("test_a_receipt_is_sent").id().endswith("Receipts.test_a_receipt_is_sent")
