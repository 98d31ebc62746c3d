"""`drain` runs what is due and no more, with a worker's rules; `submitted` shows what there is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from fencerow import App, Backoff, Snooze
from fencerow.core.model.ids import new_id
from fencerow.core.store import store
from fencerow.errors import DrainUnfinished, InvalidInput, JobsDidNotSucceed, UnknownJob
from fencerow.events import Event, consumer, publish
from fencerow.limits import Limit
from fencerow.testing import Clock, adrain, assert_submitted, bound, drain, submitted
from fencerow.testing.binding import begin


class Shop:
    """An app with a few jobs, and what they did."""

    def __init__(self) -> None:
        self.app = App("sqlite:///nowhere.db")
        self.done: list[str] = []
        self.tries = 0
        job = self.app.job

        @job(name="add")
        def add(word: str) -> str:
            self.done.append(word)
            return word.upper()

        @job(name="flaky", attempts_max=5, backoff=Backoff(base_s=300, jitter=0))
        async def flaky(failures: int) -> int:
            self.tries += 1
            if self.tries <= failures:
                raise ConnectionError(f"try {self.tries}")
            return failures

        @job(name="for_ever")
        def for_ever() -> None:
            for_ever.submit()

        @job(name="again")
        def again() -> None:
            raise Snooze(60)

        @job(name="slow", queue="slow")
        async def slow() -> None:
            await hang()

        @job(name="brief", ephemeral=True)
        def brief() -> int:
            return 1

        self.add, self.flaky, self.for_ever, self.again, self.slow = add, flaky, for_ever, again, slow
        self.brief = brief

    def note(self, word: str) -> None:
        self.done.append(word)


async def hang() -> None:
    await asyncio.sleep(100)


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    shop = Shop()
    if request.param == "sqlite":
        url = f"sqlite:///{request.getfixturevalue('sqlite_path')}"
    else:
        url = request.getfixturevalue("postgres_url")
    with bound(shop.app, url):
        yield shop
    assert shop.app.config.url is not None and shop.app.config.url.endswith("nowhere.db")


def test_what_is_due_runs_in_its_order_and_what_is_not_stays(shop: Shop) -> None:
    for word in "abc":
        shop.add.submit(word)
    shop.add.using(delay_s=60).submit("later")

    ran = drain(shop.app)

    assert [(each.name, each.outcome, each.result) for each in ran] == [
        ("add", "succeeded", word) for word in "ABC"
    ]
    assert shop.done == list("abc")
    assert [job.state for job in submitted(shop.app)] == ["succeeded"] * 3 + ["queued"]


def test_time_is_moved_for_retries_and_snoozes(shop: Shop) -> None:
    clock = Clock(shop.app)
    shop.flaky.submit(2)
    shop.again.submit()

    first = drain(shop.app)
    nothing, before = drain(shop.app), clock.now()
    clock.advance(minutes=1, seconds=5)
    second = drain(shop.app)
    clock.advance(hours=1)
    third = drain(shop.app)
    clock.advance(days=1)
    fourth = drain(shop.app)

    assert nothing == []
    assert 0 <= (clock.now() - before).total_seconds() - (65 + 3600 + 86400) < 60
    assert [(each.name, each.outcome, each.delay_s) for each in first] == [
        ("flaky", "retried", 300), ("again", "snoozed", 60)
    ]  # fmt: skip
    assert first[0].error is not None
    assert (first[0].error.type, first[0].error.message) == ("ConnectionError", "try 1")
    assert [(each.name, each.attempt, each.outcome) for each in second] == [("again", 2, "snoozed")]
    assert ("flaky", 2, "retried") in [(each.name, each.attempt, each.outcome) for each in third]
    assert ("flaky", 3, "succeeded") in [(each.name, each.attempt, each.outcome) for each in fourth]


def test_what_a_dead_worker_held_is_run_when_its_lease_is_over_by_the_database(shop: Shop) -> None:
    handle = shop.add.submit("x")
    engine, holder = shop.app.engine, new_id()
    engine.run(store.register(holder=holder, name="dies", host="h", pid=1, info="{}", lease_s=30.0))
    engine.run(store.claim("default", [store.Mark(0)], holder=holder, names=["add"], limit=1, margin_s=10.0))

    assert drain(shop.app) == [], "its lease holds"
    Clock(shop.app).advance(seconds=31)
    (ran,) = drain(shop.app)

    assert (ran.id, ran.attempt, ran.outcome) == (handle.id, 2, "succeeded")


def test_it_is_bounded_by_attempts(shop: Shop) -> None:
    shop.for_ever.submit()

    with pytest.raises(DrainUnfinished, match="for_ever succeeded 7 times"):
        drain(shop.app, attempts_max=7)


def test_it_is_bounded_in_time_and_hands_back_what_hangs(shop: Shop) -> None:
    shop.slow.submit()

    with pytest.raises(DrainUnfinished, match=r"still due after 0\.4 s"):
        drain(shop.app, timeout_s=0.4)

    (job,) = submitted(shop.app, shop.slow)
    assert (job.state, job.failures, job.holder) == ("queued", 0, None)


def test_paused_queues_and_jobs_of_others_are_left(shop: Shop) -> None:
    shop.add.submit("paused")
    shop.app.pause_queue("default")

    assert drain(shop.app) == []
    shop.app.resume_queue("default")
    assert [each.name for each in drain(shop.app)] == ["add"]
    shop.slow.submit()
    assert drain(shop.app, queues=["default"]) == []


def test_check_raises_what_did_not_succeed(shop: Shop) -> None:
    shop.add.submit("fine")
    shop.flaky.submit(1)

    with pytest.raises(JobsDidNotSucceed) as caught:
        drain(shop.app, check=True)

    assert "1 of 2 attempts did not succeed" in str(caught.value)
    assert "flaky" in caught.value.why and "ConnectionError: try 1" in caught.value.why
    assert "Traceback" in caught.value.why


def test_a_success_that_leaves_no_row_is_told(shop: Shop) -> None:
    shop.brief.submit()

    (ran,) = drain(shop.app, check=True)

    assert (ran.name, ran.outcome, ran.result) == ("brief", "succeeded", None)


async def test_in_async_code_it_is_awaited(shop: Shop) -> None:
    await shop.flaky.asubmit(0)

    with pytest.raises(InvalidInput, match="await adrain"):
        drain(shop.app)
    assert [each.outcome for each in await adrain(shop.app)] == ["succeeded"]
    await shop.app.aclose()


def test_submits_are_looked_for_by_what_matters(shop: Shop) -> None:
    shop.add.using(key="k", tags=["red"]).submit("x")
    shop.add.submit("y")

    (found,) = assert_submitted(shop.app, shop.add, args={"word": "x"}, key="k", tags=["red"], count=1)
    assert found.args == {"word": "x"}
    assert len(assert_submitted(shop.app, "add", queue="default")) == 2
    assert_submitted(shop.app, shop.slow, count=0)
    with pytest.raises(AssertionError, match=r"it has no argument 'wort'"):
        assert_submitted(shop.app, shop.add, args={"wort": "x"})
    with pytest.raises(AssertionError, match=r"it has no tag 'blue'"):
        assert_submitted(shop.app, shop.add, tags=["blue"])
    with pytest.raises(UnknownJob, match="no job named 'ad'"):
        assert_submitted(shop.app, "ad")
    with pytest.raises(InvalidInput, match="cannot be compared"):
        assert_submitted(shop.app, shop.add, args={"word": object()})


def test_events_are_delivered_and_what_they_submit_is_run(shop: Shop) -> None:
    heard: list[str] = []

    @consumer(shop.app, group="audit", topics=["word.*"], backoff=Backoff(base_s=300, jitter=0))
    def audit(event: Event) -> None:
        heard.append(event.topic)
        if event.topic == "word.bad":
            raise ConnectionError("not now")
        if event.topic == "word.first":
            shop.add.submit("from an event")

    assert drain(shop.app) == [], "makes the group, which begins at the end"
    publish(shop.app, "word.first", {})
    ran = drain(shop.app, check=True)
    publish(shop.app, "word.bad", {})

    assert (heard, [each.result for each in ran]) == (["word.first"], ["FROM AN EVENT"])
    with pytest.raises(JobsDidNotSucceed, match="nor 1 deliveries of events"):
        drain(shop.app, check=True)
    assert drain(shop.app, check=True) == [], "it is to be tried again later"
    Clock(shop.app).advance(hours=1)
    drain(shop.app)
    assert heard == ["word.first", "word.bad", "word.bad"]


def test_as_many_as_it_may_is_not_too_many(shop: Shop) -> None:
    for word in "abc":
        shop.add.submit(word)

    assert len(drain(shop.app, attempts_max=3)) == 3


def test_schedules_fire_when_the_time_is_moved_and_their_entities_are_asked_for(shop: Shop) -> None:
    users, clock = ["ann"], Clock(shop.app)
    shop.app.schedule(shop.add, "nightly", cron="0 3 * * *", entities=lambda: users)
    shop.app.schedule(shop.flaky.call(0), "hourly", interval_s=3600)

    assert drain(shop.app) == [], "it makes them, and nothing is due yet"
    users.append("bob")
    clock.advance(days=1)
    ran = drain(shop.app, check=True)
    clock.advance(days=1)
    later = drain(shop.app, check=True)

    assert sorted((each.name, each.result) for each in ran) == [("add", "ANN"), ("flaky", 0)]
    assert sorted((each.name, each.result) for each in later) == [
        ("add", "ANN"),
        ("add", "BOB"),
        ("flaky", 0),
    ]
    clock.advance(days=1)
    assert drain(shop.app, without=["schedules"]) == []


def test_a_test_begins_as_if_a_worker_had_run_before(shop: Shop) -> None:
    asked: list[str] = []

    def users() -> list[str]:
        asked.append("users")
        return ["ann"]

    url, limited = shop.app.config.url, App("sqlite:///nowhere.db", limits=[Limit("github", at_once=1)])
    work = limited.job(name="add")(shop.note)
    limited.schedule(work.call("hourly"), "hourly", interval_s=3600)
    limited.schedule(work, "users", interval_s=3600, entities=users)

    with bound(limited, url or "") as app:
        begin(app)
        app.jobs["add"].using(limits="github").submit("under a limit")
        Clock(app).advance(hours=1)
        assert asked == [], "the test has not made them yet"

        assert [each.outcome for each in drain(app)] == ["succeeded", "succeeded"]
    assert (asked, sorted(shop.done)) == (["users"], ["hourly", "under a limit"])
