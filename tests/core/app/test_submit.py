from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from fencerow import App, Backoff, Defaults, State
from fencerow.core.model.ids import new_id
from fencerow.core.telemetry import Fact
from fencerow.errors import (
    FencerowError,
    InvalidArguments,
    InvalidInput,
    InvalidPayload,
    KeyConflict,
    PayloadTooLarge,
    UnknownJob,
)


def declared(app: App) -> Any:
    @app.job(queue="documents", timeout_s=120)
    def extract(path: str, pages: int = 1) -> dict[str, int]:
        return {"pages": pages}

    return extract


async def test_sync_and_async_submits_store_the_same(app: App) -> None:
    extract = declared(app)

    one, two = await extract.asubmit("a.pdf", pages=2), await extract.asubmit("a.pdf", pages=2)

    for handle in (one, two):
        job = await app.client.aget(handle.id)
        assert (job.name, job.queue, job.state) == ("extract", "documents", State.QUEUED)
        assert job.args == {"path": "a.pdf", "pages": 2}
        assert (job.timeout_s, job.attempts_max, job.submitted_by) == (120, 3, "ada")
        assert not handle.replay


async def test_options_of_a_submit_win_over_the_jobs(app: App) -> None:
    extract = declared(app)

    handle = await extract.using(
        queue="urgent",
        priority=7,
        attempts_max=9,
        timeout_s=5,
        retention_s=60,
        expires_s=3600,
        backoff=Backoff(base_s=1),
        tags=["x", "y", "x"],
        metadata={"tenant": 5},
        headers={"traceparent": "00-1"},
    ).asubmit("a")

    job = await handle.arefresh()
    assert (job.queue, job.priority, job.attempts_max, job.timeout_s) == ("urgent", 7, 9, 5)
    assert (job.retention_s, job.tags, job.metadata) == (60, ["x", "y"], {"tenant": 5})
    assert job.headers == {"traceparent": "00-1"}
    assert msgspec.convert(job.options, Backoff) == Backoff(base_s=1)
    assert job.expires_at_us is not None
    assert job.expires_at_us - job.submitted_at_us == 3600 * 1_000_000


def test_an_option_that_no_submit_has_is_refused_with_the_nearest(app: App) -> None:
    extract = declared(app)

    with pytest.raises(InvalidInput, match="did you mean priority"):
        extract.using(prio=7)
    with pytest.raises(InvalidInput, match="write delay_s="):
        app.submit_by_name("extract", {"path": "a"}, delay=3)
    assert app.client.list_jobs() == []


async def test_defaults_of_the_queue_a_submit_chooses_hold(url: str) -> None:
    async with App(url, queues={"urgent": Defaults(priority=50, backoff=Backoff(base_s=1))}) as app:
        extract = declared(app)

        plain, urgent = await extract.asubmit("a"), await extract.using(queue="urgent").asubmit("a")

        assert ((await plain.arefresh()).priority, (await urgent.arefresh()).priority) == (0, 50)
        assert (await plain.arefresh()).options is None
        assert (await urgent.arefresh()).options["base_s"] == 1


async def test_a_delay_and_an_instant_say_when_the_job_is_due(app: App) -> None:
    extract = declared(app)
    at = datetime(2030, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))

    delayed, fixed = await extract.using(delay_s=60).asubmit("a"), await extract.using(run_at=at).asubmit("a")

    job = await delayed.arefresh()
    assert job.run_at_us - job.submitted_at_us == 60 * 1_000_000
    assert (await fixed.arefresh()).run_at_us == datetime(2030, 1, 1, 10, tzinfo=UTC).timestamp() * 1e6


async def test_one_key_makes_one_job_with_one_handle(app: App) -> None:
    extract = declared(app)

    first = await extract.using(key="17").asubmit("a")
    second = await extract.using(key="17").asubmit("a")

    assert (first.replay, second.replay) == (False, True)
    assert second.id == first.id
    job = await app.client.aget(first.id)
    assert (job.scope, job.key) == ("extract", "17")


async def test_the_scope_keeps_equal_keys_apart(app: App) -> None:
    extract = declared(app)

    first = await extract.using(key="17").asubmit("a")
    second = await extract.using(key="17", scope="tenant 5").asubmit("a")

    assert first.id != second.id


async def test_a_key_with_another_payload_is_a_conflict(app: App) -> None:
    extract = declared(app)
    first = await extract.using(key="17").asubmit("a")

    with pytest.raises(KeyConflict) as raised:
        await extract.using(key="17").asubmit("b")

    assert raised.value.job_id == first.id
    assert len(await app.client.alist_jobs()) == 1


async def test_a_submit_by_its_own_id_may_be_repeated(app: App) -> None:
    extract = declared(app)
    job_id = new_id()

    first, second = [await extract.using(id=job_id).asubmit("a") for _ in range(2)]

    assert (first.id, first.replay, second.id, second.replay) == (job_id, False, job_id, True)


@pytest.mark.parametrize(
    "options",
    [
        {"delay_s": -1},
        {"delay_s": float("nan")},
        {"delay_s": "5"},
        {"run_at": datetime(2030, 1, 1)},
        {"run_at": "tomorrow"},
        {"run_at": datetime(1950, 1, 1, tzinfo=UTC)},
        {"delay_s": 1, "run_at": datetime(2030, 1, 1, tzinfo=UTC)},
        {"priority": 101},
        {"priority": 1.5},
        {"priority": True},
        {"queue": ""},
        {"queue": "a\0b"},
        {"queue": "q" * 101},
        {"queue": 5},
        {"key": ""},
        {"key": "k" * 257},
        {"key": "\ud800"},
        {"scope": "s"},
        {"key_lifetime_s": 5},
        {"key": "k", "key_lifetime_s": 0},
        {"attempts_max": 0},
        {"timeout_s": -1},
        {"expires_s": 0},
        {"expires_s": 5, "delay_s": 5},
        {"retention_s": -1},
        {"backoff": lambda failures: 1.0},
        {"tags": "one"},
        {"tags": [""]},
        {"metadata": {"a": float("inf")}},
        {"metadata": {"a": "x" * 20_000}},
        {"headers": {"a": "b\r\nc"}},
        {"id": "17"},
    ],
)
def test_what_is_refused_at_the_door_stores_nothing(lite_app: App, options: dict[str, Any]) -> None:
    extract = declared(lite_app)

    with pytest.raises(InvalidInput):
        extract.using(**options).submit("a")

    assert lite_app.client.list_jobs() == []
    lite_app.close()


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ((), InvalidArguments),
        ((5,), InvalidArguments),
        (("a", "b", "c"), InvalidArguments),
        (("a\0",), InvalidPayload),
        (("\ud800",), InvalidPayload),
        (("x" * 2_000_000,), PayloadTooLarge),
    ],
)
async def test_arguments_that_do_not_fit_store_nothing(
    app: App, arguments: Any, kind: type[Exception]
) -> None:
    extract = declared(app)

    with pytest.raises(kind):
        await extract.asubmit(*arguments)
    with pytest.raises(kind):
        extract.submit(*arguments)

    assert await app.client.alist_jobs() == []


async def test_many_are_stored_in_chunks_and_in_their_order(app: App) -> None:
    extract = declared(app)
    heard: list[int] = []
    app.telemetry.listen(lambda name, facts: heard.append(facts["count"]) if name == Fact.SUBMITTED else None)

    handles = await extract.asubmit_many(extract.call(str(n)) for n in range(2_500))

    assert heard == [1_000, 1_000, 500]
    assert len({handle.id for handle in handles}) == 2_500
    assert (await handles[1_234].arefresh()).args == {"path": "1234"}


async def test_many_keep_the_rules_of_keys(app: App) -> None:
    extract = declared(app)
    known = await extract.using(key="b").asubmit("b")
    calls = [extract.using(key=key).call(key) for key in "abca"]

    handles = await extract.asubmit_many(calls)

    assert [handle.replay for handle in handles] == [False, True, False, True]
    assert handles[1].id == known.id
    assert handles[3].id == handles[0].id
    assert len(await app.client.alist_jobs()) == 3


async def test_many_may_come_from_an_async_iterable_and_from_several_jobs(app: App) -> None:
    extract = declared(app)

    @app.job
    def other(n: int) -> int:
        return n

    async def calls() -> AsyncIterator[Any]:
        yield extract.call("a")
        await asyncio.sleep(0)
        yield other.call(5)

    handles = await app.asubmit_many(calls())

    assert [(await app.client.aget(handle.id)).name for handle in handles] == ["extract", "other"]


async def test_a_chunk_is_stored_whole_or_not_at_all(app: App) -> None:
    extract = declared(app)
    await extract.using(key="k").asubmit("a")

    with pytest.raises(KeyConflict):
        await extract.asubmit_many([extract.call("x"), extract.using(key="k").call("other")])

    assert len(await app.client.alist_jobs()) == 1


@pytest.mark.parametrize("later", [False, True])
async def test_options_of_using_hold_for_the_many_that_go_through_it(app: App, later: bool) -> None:
    extract = declared(app)
    urgent = extract.using(queue="urgent")
    calls = [extract.call("a"), urgent.call("b"), extract.using(queue="urgent").call("c")]

    async def coming() -> AsyncIterator[Any]:
        for each in calls:
            yield each

    handles = await urgent.asubmit_many(coming() if later else calls)

    assert [(await app.client.aget(each.id)).queue for each in handles] == ["urgent"] * 3


async def test_a_call_with_other_options_than_those_it_goes_through_is_refused(app: App) -> None:
    extract = declared(app)

    @app.job
    def other(path: str) -> None: ...

    with pytest.raises(InvalidInput, match="other options"):
        await extract.using(queue="urgent").asubmit_many([extract.using(priority=5).call("a")])
    with pytest.raises(InvalidInput, match="other options"):
        await extract.using(metadata={"x": {"y": 1}}).asubmit_many(
            [extract.using(metadata={"x": {"y": True}}).call("a")]
        )
    with pytest.raises(InvalidInput, match=r"'other' was given[^\0]*: its own options count there"):
        await extract.using(queue="urgent").asubmit_many([other.call("a")])
    with pytest.raises(InvalidInput, match="'other' was given"):
        await extract.using(queue="urgent").asubmit_many([other.using(queue="urgent").call("a")])
    assert await app.client.alist_jobs() == []


async def test_none_of_many_is_none(app: App) -> None:
    assert await app.asubmit_many([]) == []


async def test_a_job_is_submitted_by_its_name_with_json_data(app: App) -> None:
    @app.job
    def bill(day: date, amounts: tuple[int, ...]) -> str:
        return str(day)

    typed = await bill.using(key="k").asubmit(date(2026, 1, 2), (1, 2))
    named = await app.asubmit_by_name("bill", {"day": "2026-01-02", "amounts": [1, 2]}, key="k")

    assert (named.id, named.replay) == (typed.id, True)


def test_an_unknown_name_shows_the_closest(lite_app: App) -> None:
    declared(lite_app)

    with pytest.raises(UnknownJob, match="did you mean extract"):
        lite_app.submit_by_name("extrakt", {})


@pytest.mark.parametrize("arguments", [{}, {"path": 5}, {"path": "a", "colour": 1}, {"path": float("nan")}])
def test_json_data_that_does_not_fit_is_refused(lite_app: App, arguments: dict[str, Any]) -> None:
    declared(lite_app)

    with pytest.raises(InvalidInput) as raised:
        lite_app.submit_by_name("extract", arguments)

    assert isinstance(raised.value, FencerowError)
    assert "stored" not in raised.value.what


@pytest.mark.parametrize("called", ["coroutine", "value"])
def test_a_job_that_was_run_instead_of_called_is_refused(lite_app: App, called: str) -> None:
    async def ran() -> int:
        return 1

    what: Any = ran() if called == "coroutine" else 1
    with pytest.raises(InvalidInput, match=r"job\.call"):
        lite_app.submit(what)
    assert lite_app.client.list_jobs() == []
    lite_app.close()
