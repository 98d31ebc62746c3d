"""What ends is told to whoever wants it: made once, sent until it is taken, under one id."""

from __future__ import annotations

import pytest

from fencerow import App
from fencerow.events.bus import EventBus
from fencerow.testing import drain
from fencerow.testing.clock import DatabaseClock
from fencerow.web.webhooks.endpoints import GROUP
from fencerow.web.webhooks.job import DELAYS_S, JOB, RETRY_AFTER_S_MAX
from tests.web.webhooks.stage import Receiver, after, end, hooks_of, is_signed


def test_what_ends_is_told_signed_with_what_it_was(app: App, receiver: Receiver) -> None:
    hooks = hooks_of(app)
    added = hooks.add("shop", receiver.url, with_result=True)

    (done,) = end(app, "ada")

    (got,) = receiver.got
    data = got.document["data"]
    assert got.document["type"] == "job.succeeded" and got.id.startswith("msg_")
    assert (data["job"], data["name"], data["queue"], data["attempt"]) == (done, "send", "mail", 1)
    assert (data["tags"], data["metadata"], data["result"]) == (["eu"], {"order": 7}, "sent to ada")
    assert is_signed(got, added.secret)


def test_each_endpoint_is_told_what_it_wants_and_no_delivery_is_told(app: App, receiver: Receiver) -> None:
    hooks = hooks_of(app)
    hooks.add("failures", receiver.url + "/failures", events=["failed"])
    hooks.add("others", receiver.url + "/others", queues=["letters"])
    hooks.add("letters", receiver.url + "/letters", jobs=["letter"])
    hooks.add("tagged", receiver.url + "/tagged", tags=["eu", "us"])
    hooks.add("off", receiver.url + "/off")
    hooks.disable("off")

    done, failed = end(app, "ada", "nobody")

    told = sorted((each.document["type"], each.document["data"]["job"]) for each in receiver.got)
    assert told == sorted([("job.failed", failed), ("job.failed", failed), ("job.succeeded", done)])
    (error,) = {str(each.document["data"].get("error")) for each in receiver.got} - {"None"}
    assert (
        "nobody is there" in error
        and "Traceback" not in error
        and "result" not in receiver.got[0].document["data"]
    )


def test_a_replay_of_the_log_makes_no_second_delivery(app: App, receiver: Receiver) -> None:
    hooks_of(app).add("shop", receiver.url)
    end(app, "ada")

    EventBus(app).replay(GROUP, "beginning")
    drain(app)

    assert len(receiver.got) == 1


def test_it_is_sent_again_under_one_id_until_it_is_taken(
    app: App, receiver: Receiver, moved: DatabaseClock
) -> None:
    answers = iter([(500, {}), None, (302, {"location": "http://127.0.0.1/"}), (200, {})])
    receiver.answer = lambda _got: next(answers)
    hooks_of(app).add("shop", receiver.url)
    end(app, "ada")

    for failures in (1, 2, 3):
        moved.advance(DELAYS_S[failures - 1] - 2)
        drain(app)
        assert len(receiver.got) == failures, "it was sent too early"
        moved.advance(after(failures) - DELAYS_S[failures - 1] + 2)
        drain(app)
    moved.advance(after(8))
    drain(app)

    assert len(receiver.got) == 4
    assert len({(each.id, each.body) for each in receiver.got}) == 1
    (delivery,) = hooks_of(app).deliveries()
    assert (delivery.state, delivery.attempts, delivery.status) == ("delivered", 4, 200)
    found = [
        (each.number, each.status, each.failure) for each in hooks_of(app).attempts("shop", delivery.event_id)
    ]
    assert found == [(1, 500, "status_500"), (2, None, "reset"), (3, 302, "status_302"), (4, 200, None)]


def test_after_the_last_attempt_it_has_failed_and_is_shown(
    app: App, receiver: Receiver, moved: DatabaseClock
) -> None:
    receiver.answer = lambda _got: (400, {})
    hooks_of(app).add("shop", receiver.url, attempts_max=2)
    end(app, "ada")
    moved.advance(after(1))
    drain(app)
    moved.advance(after(8))
    drain(app)

    (delivery,) = hooks_of(app).deliveries(state="failed")
    assert (len(receiver.got), delivery.attempts, delivery.failure) == (2, 2, "status_400")


def test_410_ends_it_and_the_endpoint_is_told_nothing_more(app: App, receiver: Receiver) -> None:
    receiver.answer = lambda _got: (410, {})
    hooks = hooks_of(app)
    hooks.add("shop", receiver.url)
    end(app, "ada")

    end(app, "bob")

    assert (hooks.get("shop").state, hooks.get("shop").reason) == ("gone", "it answered 410")
    assert len(receiver.got) == 1
    assert [each.state for each in hooks.deliveries()] == ["failed"]


@pytest.mark.parametrize(
    ("status", "asks_s", "waits_s"), [(429, 7200, 7200.0), (503, 10**9, RETRY_AFTER_S_MAX)]
)
def test_it_is_left_alone_for_as_long_as_it_asks_and_no_longer_than_a_day(
    app: App, receiver: Receiver, moved: DatabaseClock, status: int, asks_s: int, waits_s: float
) -> None:
    answers = iter([(status, {"retry-after": str(asks_s)}), (204, {})])
    receiver.answer = lambda _got: next(answers)
    hooks_of(app).add("shop", receiver.url)
    end(app, "ada")

    moved.advance(waits_s - 100)
    drain(app)
    assert len(receiver.got) == 1
    moved.advance(200)
    drain(app)

    assert [each.state for each in hooks_of(app).deliveries()] == ["delivered"]


def test_it_goes_where_the_endpoint_is_now_signed_by_its_secrets(
    app: App, receiver: Receiver, moved: DatabaseClock
) -> None:
    receiver.answer = lambda _got: (500, {})
    hooks = hooks_of(app)
    first = hooks.add("shop", receiver.url + "/old").secret
    end(app, "ada")

    second = hooks.rotate("shop", overlap_s=600)
    hooks.change("shop", url=receiver.url + "/new")
    moved.advance(after(1))
    drain(app)
    moved.advance(600)
    drain(app)

    assert [each.path for each in receiver.got] == ["/hooks/old", "/hooks/new", "/hooks/new"]
    assert is_signed(receiver.got[0], first) and is_signed(receiver.got[1], second, first)
    assert is_signed(receiver.got[2], second)


def test_the_deliveries_of_a_removed_endpoint_end_unsent(
    app: App, receiver: Receiver, moved: DatabaseClock
) -> None:
    receiver.answer = lambda _got: (500, {})
    hooks = hooks_of(app)
    hooks.add("shop", receiver.url)
    end(app, "ada")
    hooks.remove("shop")
    moved.advance(after(1))

    ran = drain(app)

    assert [(each.name, each.outcome) for each in ran] == [(JOB, "succeeded")]
    assert len(receiver.got) == 1 and hooks.deliveries() == []
