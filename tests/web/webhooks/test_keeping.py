"""What is kept of webhooks and for how long, and what the doctor says of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fencerow import App
from fencerow.core.finding import Level
from fencerow.testing import drain
from fencerow.testing.clock import DatabaseClock
from fencerow.web.settings import WebSettings
from fencerow.web.webhooks.checks import examine_webhooks
from fencerow.web.webhooks.keeping import purge_removed, purges
from tests.core.store.stage import rows, table
from tests.web.webhooks.stage import Receiver, after, end, hooks_of

DAY_S = 86_400.0


def purge(app: App) -> None:
    for each in purges(app.engine, app.config):
        asyncio.run(each())  # type: ignore[arg-type]


def count(app: App, name: str) -> object:
    engine: Any = app.engine
    return rows(engine, f"SELECT count(*) AS n FROM {table(engine, f'webhook_{name}')}")[0]["n"]


def found(app: App) -> list[str]:
    return [each.name for each in examine_webhooks(app.engine, app.config) if each.level is not Level.OK]


def test_what_arrived_is_kept_for_a_while_and_what_did_not_is_never_purged(
    app: App, receiver: Receiver, moved: DatabaseClock
) -> None:
    receiver.answer = lambda got: (200 if got.document["type"] == "job.succeeded" else 500, {})
    hooks = hooks_of(app)
    hooks.add("shop", receiver.url, attempts_max=1)
    end(app, "ada", "nobody")
    hooks.change("shop", attempts_max=12)
    end(app, "nobody")

    moved.advance(app.config.retention_webhooks_s - DAY_S)
    purge(app)
    assert len(hooks.deliveries()) == 3
    moved.advance(2 * DAY_S)
    purge(app)

    assert sorted(each.state for each in hooks.deliveries()) == ["failed", "pending"]
    assert WebSettings.of(app.config).retention_webhooks_s == 30 * DAY_S


def test_all_of_a_removed_endpoint_goes_and_the_row_last(
    app: App, receiver: Receiver, moved: DatabaseClock
) -> None:
    hooks = hooks_of(app)
    hooks.add("shop", receiver.url)
    end(app, "ada")
    hooks.remove("shop")

    purge(app)
    purge(app)
    left = [count(app, each) for each in ("deliveries", "attempts", "endpoints")]
    hooks.add("shop", receiver.url)
    end(app, "bob")
    hooks.remove("shop")
    moved.advance(3700)
    app.engine.run(purge_removed(limit=0))
    assert count(app, "endpoints") == 1  # what it was told is still there
    purge(app)
    purge(app)

    assert left == [0, 0, 1]
    assert count(app, "endpoints") == 0


@pytest.mark.parametrize("kind", ["gone", "fails", "failed", "waits"])
def test_the_doctor_tells_which_endpoint_suffers_from_what(
    app: App, receiver: Receiver, moved: DatabaseClock, kind: str
) -> None:
    receiver.answer = lambda _got: (410 if kind == "gone" else 500, {})
    hooks = hooks_of(app)
    hooks.add("shop", receiver.url, attempts_max=1 if kind == "failed" else 12)
    end(app, *["ada"] * (10 if kind == "fails" else 1))
    if kind == "waits":
        moved.advance(after(1))
        drain(app)
        moved.advance(3700)

    expected = {
        "gone": ["webhook endpoint that is gone", "webhooks that did not arrive"],
        "fails": ["webhook endpoint that fails"],
        "failed": ["webhooks that did not arrive"],
        "waits": ["webhooks that wait"],
    }[kind]
    assert found(app) == expected


def test_the_doctor_says_nothing_where_there_is_no_endpoint(app: App) -> None:
    assert list(examine_webhooks(app.engine, app.config)) == []
