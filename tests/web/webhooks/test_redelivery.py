"""Sent once more, left alone for a while, kept in order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from fencerow import App
from fencerow.core.errors import InvalidInput
from fencerow.core.model.job import moment
from fencerow.errors import EndpointConflict
from fencerow.testing import drain
from fencerow.testing.clock import DatabaseClock
from fencerow.web.webhooks import verbs
from fencerow.web.webhooks.deliveries import (
    CIRCUIT_FAILURES,
    CIRCUIT_S,
    CIRCUIT_S_MAX,
    PostAttempt,
    note_failed,
)
from fencerow.web.webhooks.verbs import redelivering
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.web.webhooks.stage import Answer, Receiver, after, end, hooks_of

cli = command_line.cli  # fixture


def failed(app: App, receiver: Receiver, *to: str) -> None:
    """Deliveries that have failed: the receiver refuses them."""
    receiver.answer = lambda _got: (500, {})
    hooks_of(app).add("shop", receiver.url, attempts_max=1)
    end(app, *to)
    receiver.answer = lambda _got: (200, {})


def test_what_failed_is_sent_once_more_under_the_same_id_and_body(app: App, receiver: Receiver) -> None:
    failed(app, receiver, "ada")
    hooks = hooks_of(app)

    would = hooks.redeliver("shop", dry_run=True)
    drain(app)
    assert len(receiver.got) == 1
    done = hooks.redeliver("shop")
    drain(app)

    assert [each.webhook_id for each in would] == [each.webhook_id for each in done] == receiver.ids()[:1]
    assert len(receiver.got) == 2 and len({(each.id, each.body) for each in receiver.got}) == 1
    assert [(each.state, each.attempts) for each in hooks.deliveries()] == [("delivered", 2)]
    assert hooks.redeliver("shop") == []
    assert len(hooks.redeliver("shop", state="delivered")) == 1
    assert (
        hooks.redeliver("shop", state=None, dry_run=True) == hooks.redeliver("shop", state=None) == []
    )  # on its way


def test_who_saw_a_failure_sends_nothing_once_more_when_another_has_and_it_has_arrived(
    app: App, receiver: Receiver
) -> None:
    failed(app, receiver, "ada")
    seen = hooks_of(app).deliveries()

    assert len(app.client.run(redelivering(seen, app.client))) == 1
    drain(app)
    assert app.client.run(redelivering(seen, app.client)) == []
    drain(app)

    assert len(receiver.got) == 2


def test_a_range_is_sent_once_more_and_what_is_outside_is_not(
    app: App, receiver: Receiver, moved: DatabaseClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed(app, receiver, "ada", "bob")
    moved.advance(3600)
    receiver.answer = lambda _got: (500, {})
    end(app, "eve")
    receiver.answer = lambda _got: (200, {})
    hooks = hooks_of(app)
    last = hooks.deliveries()[0]
    since: datetime = moment(last.created_at_us) - timedelta(minutes=10)

    done = hooks.redeliver(until=since)
    drain(app)

    assert len(done) == 2 and done[0].event_id < done[1].event_id  # the oldest first
    assert [each.event_id for each in hooks.deliveries(state="failed")] == [last.event_id]
    assert [each.event_id for each in hooks.deliveries(since=since)] == [last.event_id]
    assert [each.endpoint for each in hooks.deliveries(job=last.ended_id)] == ["shop"]
    with pytest.raises(InvalidInput):
        hooks.redeliver()
    monkeypatch.setattr(verbs, "LIMIT_MAX", 0)
    with pytest.raises(InvalidInput):
        hooks.redeliver("shop")


def test_an_endpoint_that_is_not_enabled_is_sent_nothing_once_more(app: App, receiver: Receiver) -> None:
    failed(app, receiver, "ada")
    hooks = hooks_of(app)
    hooks.disable("shop")

    with pytest.raises(EndpointConflict):
        hooks.redeliver("shop")
    assert hooks.redeliver(job=hooks.deliveries()[0].ended_id) == []


def test_what_is_under_way_to_a_disabled_endpoint_fails_unsent_and_can_be_sent_later(
    app: App, receiver: Receiver, moved: DatabaseClock
) -> None:
    receiver.answer = lambda _got: (500, {})
    hooks = hooks_of(app)
    hooks.add("shop", receiver.url)
    end(app, "ada")
    hooks.disable("shop")
    moved.advance(after(1))
    drain(app)
    assert (len(receiver.got), [each.state for each in hooks.deliveries()]) == (1, ["failed"])

    receiver.answer = lambda _got: (200, {})
    hooks.enable("shop")
    hooks.redeliver("shop")
    drain(app)

    assert (len(receiver.got), [each.state for each in hooks.deliveries()]) == (2, ["delivered"])


def test_an_endpoint_that_fails_is_left_alone_and_one_probe_goes_first(
    app: App, receiver: Receiver, moved: DatabaseClock
) -> None:
    receiver.answer = lambda _got: (500, {})
    hooks = hooks_of(app)
    hooks.add("shop", receiver.url)
    end(app, *["ada"] * (CIRCUIT_FAILURES + 3))
    assert (len(receiver.got), hooks.get("shop").is_open) == (CIRCUIT_FAILURES, True)

    moved.advance(CIRCUIT_S + 10)  # all are due: those that failed, and those that were kept
    drain(app)
    assert len(receiver.got) == CIRCUIT_FAILURES + 1  # the probe, in vain

    receiver.answer = lambda _got: (200, {})
    moved.advance(2 * CIRCUIT_S + 10)
    drain(app)
    assert not hooks.get("shop").is_open
    moved.advance(after(3))
    drain(app)
    assert [each.state for each in hooks.deliveries()] == ["delivered"] * (CIRCUIT_FAILURES + 3)
    assert max(each.attempts for each in hooks.deliveries()) <= 3  # what was kept used up no attempt


def test_a_circuit_is_open_for_no_longer_than_an_hour(
    app: App, receiver: Receiver, moved: DatabaseClock
) -> None:
    receiver.answer = lambda _got: (500, {})
    hooks = hooks_of(app)
    hooks.add("shop", receiver.url, attempts_max=100)
    end(app, *["ada"] * CIRCUIT_FAILURES)

    for _ in range(8):
        moved.advance(CIRCUIT_S_MAX + 10)
        drain(app)

    found = hooks.get("shop")
    assert found.open_until_us is not None
    assert found.open_until_us - found.now_us <= CIRCUIT_S_MAX * 1e6


def test_what_was_under_way_when_the_circuit_opened_does_not_count(app: App, receiver: Receiver) -> None:
    receiver.answer = lambda _got: (500, {})
    hooks = hooks_of(app)
    hooks.add("shop", receiver.url)
    end(app, *["ada"] * CIRCUIT_FAILURES)
    was = hooks.get("shop")

    app.engine.run(
        note_failed(hooks.deliveries()[0].job_id, PostAttempt(1.0, None, "timeout"), is_probe=False)
    )

    assert (hooks.get("shop").failures, hooks.get("shop").open_until_us) == (was.failures, was.open_until_us)


@pytest.mark.parametrize("anew", ["another url", "enabled again"])
def test_who_begins_anew_begins_with_a_closed_circuit(app: App, receiver: Receiver, anew: str) -> None:
    receiver.answer = lambda _got: (500, {})
    hooks = hooks_of(app)
    hooks.add("shop", receiver.url)
    end(app, *["ada"] * CIRCUIT_FAILURES)
    assert hooks.change("shop", timeout_s=20).is_open

    if anew == "another url":
        hooks.change("shop", url=receiver.url + "/new")
    else:
        hooks.disable("shop")
        hooks.enable("shop")

    assert (hooks.get("shop").failures, hooks.get("shop").is_open) == (0, False)


@pytest.mark.parametrize("in_order", ["endpoint", "key"])
def test_what_keeps_its_order_waits_for_the_retry_of_what_was_before_it(
    app: App, receiver: Receiver, moved: DatabaseClock, in_order: str
) -> None:
    first_fails: Iterator[Answer] = iter([(500, {})])
    receiver.answer = lambda _got: next(first_fails, (200, {}))
    hooks_of(app).add("shop", receiver.url, in_order=in_order)  # type: ignore[arg-type]
    sent = [app.jobs["send"].using(exclusive="order 7").submit(each).id for each in ("a", "b", "c")]
    drain(app)
    assert len(receiver.got) == 1

    moved.advance(after(1))
    drain(app)

    assert [each.document["data"]["job"] for each in receiver.got] == [sent[0], *sent]


def test_the_commands_show_deliveries_and_send_them_once_more(
    app: App, receiver: Receiver, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed(app, receiver, "ada")
    monkeypatch.setenv("FENCEROW_URL", app.config.url or "")
    monkeypatch.setenv("FENCEROW_WEBHOOK_ALLOW", app.config.webhook_allow or "")

    (listed,) = json.loads(cli("webhooks", "deliveries", "shop", "--json").out)
    tried = cli("webhooks", "attempts", "shop", str(listed["event_id"]))
    dry = cli("webhooks", "redeliver", "shop", "--dry-run", "--since", "2020-01-01T00:00Z")
    assert (listed["state"], listed["failure"]) == ("failed", "status_500") and "status_500" in tried.out
    assert listed["webhook_id"] in dry.out and "1 delivery would be" in dry.err
    assert cli("webhooks", "redeliver", "--id", listed["webhook_id"]).code == 0
    drain(app)

    assert "delivered" in cli("webhooks", "deliveries").out
    assert cli("webhooks", "redeliver").code == 2
    tested = cli("webhooks", "test", "shop")
    assert tested.code == 0 and receiver.got[-1].document["type"] == "webhook.test"
    receiver.answer = lambda _got: None
    assert cli("webhooks", "test", "shop").code == 1
