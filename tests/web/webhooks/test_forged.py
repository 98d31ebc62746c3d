"""A row of an endpoint that our own code never writes: it is told nothing, it stops no other, and is named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fencerow import App
from fencerow.web.webhooks.checks import examine_webhooks
from tests.core.store.stage import rows, table
from tests.web.webhooks.stage import Receiver, end, hooks_of

FORGED = {
    "events": json.dumps("succeeded"),
    "queues": json.dumps([1]),
    "tags": "[" * 5000 + "]" * 5000,
}


@pytest.mark.parametrize("column", FORGED)
def test_a_damaged_endpoint_stops_no_other(app: App, receiver: Receiver, column: str) -> None:
    hooks = hooks_of(app)
    hooks.add("bad", receiver.url + "/bad")
    hooks.add("good", receiver.url + "/good")
    engine: Any = app.engine
    change = f"SET {column} = '{FORGED[column]}' WHERE name = 'bad' RETURNING 1 AS n"
    rows(engine, f"UPDATE {table(engine, 'webhook_endpoints')} {change}")

    end(app, "ada")

    assert [each.path for each in receiver.got] == ["/hooks/good"]
    assert {each.name: each.damaged for each in hooks.known()} == {"bad": (column,), "good": ()}
    assert "endpoint bad" in "".join(each.found for each in examine_webhooks(app.engine, app.config))
