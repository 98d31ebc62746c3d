"""Sealed and signed payloads of an app: what lies in the database, and what comes back out of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from fencerow import App, Client, Job, JobFailed, KeyConflict
from fencerow.app import Unique
from fencerow.batches import BatchItem
from fencerow.core.telemetry import Fact
from fencerow.errors import (
    ConfigError,
    DeclarationError,
    InvalidInput,
    InvalidPayload,
    PayloadAltered,
    SealKeyUnknown,
)
from fencerow.payloads import Seal, Sign
from fencerow.testing import drain
from fencerow.testing.clock import clock_of
from tests.payloads.conftest import K1, MARKS, ROTATED, SEALS, of, stored, write

SECRET = "4111 1111 1111 1111"


def declare(app: App, name: str = "pay", **options: Any) -> Any:
    ran: list[Any] = []

    @app.job(name=name, **options)
    async def pay(card: str, amounts: list[float]) -> dict[str, Any]:
        ran.append((card, amounts))
        return {"receipt": card[::-1], "sum": sum(amounts)}

    pay.ran = ran  # type: ignore[attr-defined]
    return pay


async def test_arguments_and_results_come_back_as_they_went_in(app: App, how: str) -> None:
    pay = declare(app)
    handle = await pay.asubmit(SECRET + " é \u2028", [1e22, -0.0, 0.1])
    lies = of(stored(app, handle.id)["args"])
    async with app.worker():
        assert (await handle.aresult(60))["sum"] == 1e22
    assert pay.ran == [(SECRET + " é \u2028", [1e22, -0.0, 0.1])]
    row = stored(app, handle.id)
    assert lies["name"] == f"fencerow:{'sealed' if how == 'seal' else 'signed'}"
    assert of(row["result"])["of"] == "result"
    assert (SECRET in row["args"], SECRET[::-1] in row["result"]) == ((how == "sign"),) * 2


async def test_all_kinds_of_handlers_store_their_results_packed(app: App) -> None:
    @app.job
    def plain(n: int) -> int:
        return n + 1

    @app.job
    def writes(job: Job, n: int) -> int:
        with job.transaction():
            return n + 1

    @app.job
    async def awrites(job: Job, n: int) -> int:
        async with job.transaction():
            return n + 1

    @app.batch_job
    async def together(items: Sequence[BatchItem[int, int]]) -> None:
        for item in items:
            item.succeed(item.value + 1)

    calls = [each.call(5) for each in (plain, writes, awrites, together, together)]
    handles = await app.asubmit_many(calls)
    async with app.worker():
        assert [await each.aresult(60) for each in handles] == [6] * 5
    for each in handles:
        of(stored(app, each.id)["args"])
        of(stored(app, each.id)["result"])


async def test_large_ones_that_do_not_come_with_the_claim_are_opened_too(app: App) -> None:
    @app.job
    async def length(text: str) -> int:
        return len(text)

    handle = await length.asubmit("x" * 200_000)
    async with app.worker():
        assert await handle.aresult(60) == 200_000


@pytest.mark.parametrize("change", ["text", "moved", "plain", "cut", "version"])
async def test_an_altered_payload_is_refused_and_counted_and_never_run(
    app: App, how: str, change: str
) -> None:
    pay = declare(app, args_version=2)
    handle = await pay.asubmit(SECRET, [1.0])
    other = await pay.asubmit("other", [1.0])
    text: str = stored(app, handle.id)["args"]
    match change:
        case "text" if how == "seal":
            sealed = of(text)["text"]
            text = text.replace(sealed, sealed[:60] + ("A" if sealed[60] != "A" else "B") + sealed[61:])
        case "text":
            text = text.replace("4111", "4112")
        case "moved":
            text = stored(app, other.id)["args"]
        case "plain":
            text = '{"card":"other","amounts":[]}'
        case "cut":
            text = '{"fencerow:sealed":{"key":"k1"}}'
        case _:
            write(app, handle.id, "options", '{"args_version":1}')
    write(app, handle.id, "args", text)
    told: list[dict[str, Any]] = []
    app.telemetry.listen(
        lambda name, facts: told.append(dict(facts)) if name == Fact.PAYLOAD_ALTERED else None
    )
    async with app.worker():
        with pytest.raises(JobFailed) as caught:
            await handle.aresult(60)
        await other.aresult(60)
    assert caught.value.error.code == "payload_altered"
    assert told == [{"job_id": handle.id, "what": "arguments"}]
    assert app.telemetry.counters.get("payloads_altered") == 1
    assert pay.ran == [("other", [1.0])]
    assert (await handle.arefresh()).attempt == 1, "it is not tried again"


async def test_arguments_cannot_be_given_to_another_job(app: App) -> None:
    """Not even under the same id: the name decides what they do."""
    declare(app)
    refund = declare(app, "refund")
    handle = await app.asubmit_by_name("pay", {"card": SECRET, "amounts": []})
    write(app, handle.id, "name", "refund")
    async with app.worker():
        with pytest.raises(JobFailed) as caught:
            await handle.aresult(60)
    assert caught.value.error.code == "payload_altered"
    assert refund.ran == []


async def test_an_altered_result_is_not_handed_on(app: App) -> None:
    pay = declare(app)
    one, two = await app.asubmit_many([pay.call(SECRET, []), pay.call("other", [])])
    async with app.worker():
        await one.aresult(60)
        await two.aresult(60)
    write(app, one.id, "result", stored(app, two.id)["result"], "finished_jobs")
    with pytest.raises(PayloadAltered):
        await one.aresult(60)
    write(app, one.id, "result", '{"receipt":"","sum":0}', "finished_jobs")
    with pytest.raises(PayloadAltered):
        await one.aresult(60)


async def test_nor_is_one_handed_over(app: App) -> None:
    pay = declare(app, handover="billing")
    one, two = await app.asubmit_many([pay.call(SECRET, []), pay.call("other", [])])
    async with app.worker():
        await one.aresult(60)
        await two.aresult(60)
    receiver = app.client.handovers()
    (first,) = await receiver.atake(2)
    assert first.result == {"receipt": SECRET[::-1], "sum": 0}
    client = Client(app.engine)
    with pytest.raises(SealKeyUnknown):
        _ = (await client.handovers().aget(one.id)).result
    await client.aclose()
    await receiver.aconfirm(first)
    table = "fencerow_handovers" if app.engine.dialect == "sqlite" else "fencerow.handovers"
    with app.engine.session() as session:
        session.connection.execute(f"UPDATE {table} SET result = 'true' WHERE job_id = '{two.id}'")
    (second,) = await receiver.atake(2)
    with pytest.raises(PayloadAltered):
        _ = second.result


async def test_a_client_without_the_key_is_told_so(app: App) -> None:
    pay = declare(app)
    handle = await pay.asubmit(SECRET, [])
    async with app.worker():
        await handle.aresult(60)
    client = Client(app.engine)
    with pytest.raises(SealKeyUnknown, match="no key"):
        await client.handle(handle.id).aresult(60)
    await client.aclose()
    assert await app.client.handle(handle.id).aresult(60) == {"receipt": SECRET[::-1], "sum": 0}


async def test_keys_rotate_while_jobs_wait(app: App, url: str, how: str) -> None:
    before = await declare(app).asubmit(SECRET, [])
    async with App(url, seal=ROTATED[how]("k2", "k1")) as newer:
        pay = declare(newer)
        after = await pay.asubmit("other", [])
        assert (of(stored(app, before.id)["args"])["key"], of(stored(app, after.id)["args"])["key"]) == (
            "k1",
            "k2",
        )
        async with newer.worker():
            assert (await newer.client.handle(before.id).aresult(60))["sum"] == 0
            await after.aresult(60)
        assert sorted(card for card, _ in pay.ran) == [SECRET, "other"]


async def test_a_job_whose_key_was_rotated_out_waits_uncounted_for_it(app: App, url: str, how: str) -> None:
    handle = await declare(app).asubmit(SECRET, [])
    given_back: asyncio.Queue[str] = asyncio.Queue()
    async with App(url, seal=ROTATED[how]("k2")) as newer:
        pay = declare(newer)
        newer.telemetry.listen(
            lambda name, facts: given_back.put_nowait(facts["reason"]) if name == Fact.RELEASED else None
        )
        async with newer.worker():
            assert "FR-311" in await asyncio.wait_for(given_back.get(), 30)
        assert pay.ran == []
    record = await handle.arefresh()
    assert (record.state, record.failures, record.snoozes) == ("queued", 0, 0)
    clock = clock_of(app.engine)
    clock.advance(1000)
    async with app.worker():
        await handle.aresult(60)
    clock.close()


async def test_nor_for_ever_and_a_revive_runs_it_with_the_key(app: App, url: str, how: str) -> None:
    handle = await declare(app).asubmit(SECRET, [])
    given_back: asyncio.Queue[None] = asyncio.Queue()
    async with App(url, seal=ROTATED[how]("k2")) as newer:
        clock = clock_of(newer.engine)
        pay = declare(newer)
        newer.telemetry.listen(lambda name, _: given_back.put_nowait(None) if name == Fact.RELEASED else None)
        async with newer.worker():
            for advance_s in (2, 3, 25 * 3600.0):
                await asyncio.wait_for(given_back.get(), 30)
                clock.advance(advance_s)
            with pytest.raises(JobFailed) as caught:
                await newer.client.handle(handle.id).aresult(60)
        assert caught.value.error.code == "seal_key_unknown" and pay.ran == []
        clock.close()
    await handle.arevive()
    async with app.worker():
        await handle.aresult(60)


async def test_jobs_from_before_are_run_only_where_that_is_said(url: str, how: str) -> None:
    async with App(url) as before:
        pay = declare(before)
        one, two = await before.asubmit_many([pay.call("old", []), pay.using(key="k").call("keyed", [])])
    async with App(url, seal=SEALS[how](accepts_plain=True)) as between:
        pay = declare(between)
        again = await pay.using(key="k").asubmit("keyed", [])
        assert (again.id, again.replay) == (two.id, True)
        with pytest.raises(KeyConflict):
            await pay.using(key="k").asubmit("other", [])
        async with between.worker():
            await between.client.handle(one.id).aresult(60)
    async with App(url) as before:
        plain = await declare(before).asubmit("plain", [])
    async with App(url, seal=SEALS[how]()) as after:
        pay = declare(after)
        async with after.worker():
            with pytest.raises(JobFailed, match="not what was packed"):
                await after.client.handle(plain.id).aresult(60)
        assert pay.ran == []


async def test_a_repeated_key_is_the_same_payload_or_a_conflict(app: App, url: str, how: str) -> None:
    pay = declare(app)
    first = await pay.using(key="order-1").asubmit(SECRET, [1.0])
    assert (await pay.using(key="order-1").asubmit(SECRET, [1.0])).id == first.id
    with pytest.raises(KeyConflict):
        await pay.using(key="order-1").asubmit(SECRET, [2.0])
    async with App(url, seal=ROTATED[how]("k2", "k1")) as newer:
        assert (await declare(newer).using(key="order-1").asubmit(SECRET, [1.0])).id == first.id


async def test_a_repeated_id_is_the_same_payload_or_other_work(app: App, url: str, how: str) -> None:
    pay = declare(app)
    first = await pay.asubmit(SECRET, [1.0])
    assert (await pay.using(id=first.id).asubmit(SECRET, [1.0])).replay
    with pytest.raises(InvalidInput):
        await pay.using(id=first.id).asubmit(SECRET, [2.0])
    async with App(url, seal=ROTATED[how]("k2", "k1")) as newer:
        assert (await declare(newer).using(id=first.id).asubmit(SECRET, [1.0])).replay
    await first.achange(args={"card": "new", "amounts": []})
    assert (await pay.using(id=first.id).asubmit(SECRET, [1.0])).replay, "it knows what it was submitted with"


async def test_unique_jobs_and_keys_are_told_by_the_arguments(app: App) -> None:
    once = declare(app, "once", unique=True, exclusive=lambda card, **_: f"card-{card[-4:]}")
    one, two = await once.asubmit(SECRET, [1.0]), await once.asubmit(SECRET, [1.0])
    other = await once.asubmit(SECRET, [2.0])
    assert (one.id == two.id, other.id == one.id) == (True, False)
    assert (await other.arefresh()).exclusive == "card-1111"


async def test_what_replaces_a_job_is_sealed_for_it(app: App) -> None:
    newest = declare(app, "newest", unique=Unique("it", on_conflict="replace"))
    first = await newest.asubmit("first", [])
    second = await newest.asubmit("second", [])
    assert (second.id, second.answer) == (first.id, "replaced")
    third, fourth = await app.asubmit_many([newest.call("third", []), newest.call("fourth", [])])
    assert third.id == fourth.id == first.id
    async with app.worker():
        assert (await first.aresult(60))["receipt"] == "htruof"


async def test_new_arguments_are_sealed_for_their_job(app: App) -> None:
    pay = declare(app, exclusive=lambda card, **_: card)
    handle = await pay.asubmit("a", [])
    done = await handle.achange(args={"card": "b", "amounts": []})
    assert done.changes["exclusive"] == ("a", "b")
    assert not (await handle.achange(args={"card": "b", "amounts": []})).changes
    other = await declare(app, "other").asubmit("a", [])
    client = Client(app.engine, actor="eve")
    with pytest.raises(InvalidInput, match="sealed or signed"):
        await client.achange(other.id, args={"card": "c", "amounts": []})
    await client.aclose()
    async with app.worker():
        assert (await handle.aresult(60))["receipt"] == "b"


async def test_a_schedules_jobs_are_sealed_and_it_stays_as_it_is(app: App, how: str) -> None:
    pay = declare(app)
    app.schedule(pay.call(SECRET, [1.0]), "nightly", interval_s=60)
    assert (await app.schedules.areconcile()).made
    again = await app.schedules.areconcile()
    assert not again.made and not again.changed, "the same arguments are sealed alike"
    record = await app.schedules.aget("nightly")
    assert (SECRET in str(record.document())) == (how == "sign")
    (run,) = await app.schedules.arun("nightly")
    assert run.job_id is not None
    async with app.worker():
        await app.client.handle(run.job_id).aresult(60)
    assert pay.ran == [(SECRET, [1.0])]


async def test_what_follows_a_job_is_sealed_for_its_own_id(app: App) -> None:
    pay = declare(app)

    @app.job
    async def first(job: Job) -> None:
        job.submit_next(pay.using(key="next").call(SECRET, []))

    done = await first.asubmit()
    async with app.worker():
        await done.aresult(60)
        follower = await pay.using(key="next").asubmit(SECRET, [])
        assert follower.replay
        await follower.aresult(60)
    assert pay.ran == [(SECRET, [])]
    of(stored(app, follower.id)["args"])


async def test_jobs_are_drained_in_tests(app: App) -> None:
    pay = declare(app)
    await pay.asubmit(SECRET, [])
    (ran,) = await asyncio.to_thread(drain, app)
    assert pay.ran and ran.result == {"receipt": SECRET[::-1], "sum": 0}


def test_a_result_that_looks_like_a_sealed_one_is_refused(url: str) -> None:
    with App(url) as app:

        @app.job
        def deceive() -> dict[str, str]:
            return {"fencerow:sealed": "x"}

        handle = deceive.submit()
        drain(app)
        with pytest.raises(JobFailed) as caught:
            handle.result(60)
        assert InvalidPayload.__name__ in caught.value.error.type


@pytest.mark.parametrize(
    "make",
    [
        lambda: Seal({}, marks=MARKS),
        lambda: Seal({"k": b"short"}, marks=MARKS),
        lambda: Seal({"k": K1}, marks=b"short"),
        lambda: Seal({"k k": K1}, marks=MARKS),
        lambda: Sign({"k": b"short"}),
        lambda: Sign([K1]),  # type: ignore[arg-type]
    ],
)
def test_keys_that_cannot_be_used_are_refused_and_not_shown(make: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        make()
    assert "short" not in str(caught.value)


def test_what_neither_seals_nor_signs_is_refused(url: str) -> None:
    with pytest.raises(DeclarationError, match="seal= is of type str"):
        App(url, seal="key")  # type: ignore[arg-type]
