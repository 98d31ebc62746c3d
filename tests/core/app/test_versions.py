"""Arguments outlive the code that stored them: old ones are upgraded, newer ones wait for newer code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from fencerow import App, Backoff, JobFailed
from fencerow.batches import BatchItem
from fencerow.core.model.backoff import backoff_of, encode_options
from fencerow.core.model.codec import args_version_of
from fencerow.core.store import store
from fencerow.core.telemetry import Fact
from fencerow.core.worker.deciding import UNREADABLE_CODES
from fencerow.errors import ArgumentsTooNew, DeclarationError, MalformedPayload, WrongCall
from fencerow.operators import looking
from fencerow.testing.clock import clock_of

DAY_S = 24 * 3600.0


@pytest.fixture
async def newer(url: str) -> AsyncIterator[App]:
    """An app of the next release, on the same database."""
    async with App(url, actor="ada") as made:
        yield made


def to_euro(version: int, arguments: dict[str, Any]) -> dict[str, Any]:
    assert version == 1
    return {"amount": {"cents": arguments["cents"], "currency": "EUR"}}


def declare_old(app: App) -> Any:
    @app.job(name="pay")
    async def pay(cents: int) -> str:
        return f"old {cents}"

    return pay


def declare_new(app: App, **options: Any) -> Any:
    @app.job(name="pay", args_version=2, **options)
    async def pay(amount: dict[str, Any]) -> str:
        return f"new {amount['cents']} {amount['currency']}"

    return pay


async def test_arguments_of_an_older_version_are_upgraded(app: App, newer: App) -> None:
    handle = await declare_old(app).asubmit(cents=250)
    declare_new(newer, upgrade=to_euro)

    async with newer.worker():
        assert await handle.aresult(60) == "new 250 EUR"


async def test_arguments_of_the_same_version_are_not_touched(newer: App) -> None:
    pay = declare_new(newer, upgrade=to_euro)

    async with newer.worker():
        assert await (await pay.asubmit(amount={"cents": 1, "currency": "CHF"})).aresult(60) == "new 1 CHF"


async def test_without_a_hook_older_arguments_are_read_as_they_are(app: App, newer: App) -> None:
    handle = await declare_old(app).asubmit(cents=250)

    @newer.job(name="pay", args_version=2)
    async def pay(cents: int, currency: str = "EUR") -> str:
        return f"{cents} {currency}"

    async with newer.worker():
        assert await handle.aresult(60) == "250 EUR"


async def test_a_hook_that_fails_fails_that_job_with_its_error(app: App, newer: App) -> None:
    handle = await declare_old(app).asubmit(cents=250)

    def broken(version: int, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"amount": arguments["gone"]}

    declare_new(newer, upgrade=broken)

    async with newer.worker():
        with pytest.raises(JobFailed, match=r"upgrade from version 1 failed \(KeyError\)") as caught:
            await handle.aresult(60)
    assert caught.value.error is not None
    assert caught.value.error.type.endswith(MalformedPayload.__name__)


async def test_the_value_of_a_batch_is_upgraded_too(app: App, newer: App) -> None:
    @app.batch_job(name="send")
    async def old(items: Sequence[BatchItem[str, str]]) -> None: ...

    handle = await old.asubmit("ada@example.org")

    @newer.batch_job(name="send", args_version=2, upgrade=lambda _, was: {"value": {"to": was["value"]}})
    async def send(items: Sequence[BatchItem[dict[str, str], str]]) -> None:
        for item in items:
            item.succeed(item.value["to"])

    async with newer.worker():
        assert await handle.aresult(60) == "ada@example.org"


async def test_newer_arguments_wait_uncounted_for_newer_code(app: App, newer: App) -> None:
    given_back: asyncio.Queue[str] = asyncio.Queue()
    app.telemetry.listen(
        lambda name, facts: given_back.put_nowait(facts["reason"]) if name == Fact.RELEASED else None
    )
    declare_old(app)
    handle = await declare_new(newer).asubmit(amount={"cents": 5, "currency": "EUR"})

    async with app.worker():
        assert "version 2" in await asyncio.wait_for(given_back.get(), 10)
    record = await handle.arefresh()
    assert (record.state, record.failures, record.snoozes) == ("queued", 0, 0)
    clock_of(newer.engine).advance(1000)
    async with newer.worker():
        assert await handle.aresult(60) == "new 5 EUR"
    clock_of(newer.engine).close()


async def test_newer_arguments_wait_longer_each_time_and_not_for_ever(app: App, newer: App) -> None:
    given_back: asyncio.Queue[None] = asyncio.Queue()
    app.telemetry.listen(lambda name, _: given_back.put_nowait(None) if name == Fact.RELEASED else None)
    declare_old(app)
    handle = await declare_new(newer).asubmit(amount={"cents": 5, "currency": "EUR"})
    clock = clock_of(app.engine)

    async with app.worker():
        for advance_s in (2, 3, 5, DAY_S):
            await asyncio.wait_for(given_back.get(), 10)
            clock.advance(advance_s)
        with pytest.raises(JobFailed) as caught:
            await handle.aresult(60)
    assert caught.value.error is not None
    assert caught.value.error.code == UNREADABLE_CODES[ArgumentsTooNew]
    events = [
        each.at_us for each in await app.engine.arun(looking.events(handle.id)) if each.kind == "released"
    ]
    assert len(events) == 4
    clock.close()


@pytest.mark.parametrize(
    "options",
    [{"args_version": 0}, {"args_version": "2"}, {"args_version": 1.5}, {"upgrade": 5}],
)
def test_a_wrong_declaration_is_refused(lite_app: App, options: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError):
        lite_app.job(**options)


def test_a_misspelled_option_shows_the_closest(lite_app: App) -> None:
    options: Any = {"timeout": 5}
    with pytest.raises(WrongCall, match="did you mean timeout_s"):
        lite_app.job(**options)


def test_a_backoff_and_a_version_are_stored_together() -> None:
    backoff = Backoff(base_s=7, jitter=0)
    stored = encode_options(backoff, 3)
    assert stored is not None
    assert (args_version_of(stored.encode()), backoff_of(stored.encode())) == (3, backoff)
    assert encode_options(None, 1) is None
    only = encode_options(None, 2)
    assert only is not None
    assert (args_version_of(only.encode()), backoff_of(only.encode())) == (2, None)
    plain = Backoff(base_s=1).to_json().encode()
    assert (args_version_of(plain), backoff_of(plain)) == (1, Backoff(base_s=1))
    assert args_version_of(b"[broken") == 1


async def test_a_long_past_hides_nothing_and_counts_for_nothing(app: App, newer: App) -> None:
    """However much was noted before, and however often it was given back in another deploy, patience is its own."""
    declare_old(app)
    handle = await declare_new(newer).asubmit(amount={"cents": 5, "currency": "EUR"})
    reason = '{"detail":{"reason":"' + ArgumentsTooNew.code + ' of long ago"}}'
    at = {"sqlite": "0", "postgres": "'1970-01-01'"}[app.engine.dialect]
    table = {"sqlite": "fencerow_job_events", "postgres": "fencerow.job_events"}[app.engine.dialect]
    notes = [f"('{handle.id}', 0, {at}, 'released', '{reason}')"]
    notes += [f"('{handle.id}', 0, {at}, 'snoozed', '{{}}')"] * 1_100
    with app.engine.session() as session:
        session.connection.execute(
            f"INSERT INTO {table} (job_id, attempt, at, kind, detail) VALUES {', '.join(notes)}"
        )
    clock = clock_of(app.engine)
    given_back: asyncio.Queue[None] = asyncio.Queue()
    app.telemetry.listen(lambda name, _: given_back.put_nowait(None) if name == Fact.RELEASED else None)

    async with app.worker():
        for advance_s in (5, 5, 5):
            await asyncio.wait_for(given_back.get(), 60)
            clock.advance(advance_s)
        assert (await app.engine.arun(store.releases(handle.id, reason=ArgumentsTooNew.code))).count >= 3
        clock.advance(DAY_S)
        with pytest.raises(JobFailed) as caught:
            await handle.aresult(60)
    assert caught.value.error is not None
    assert caught.value.error.code == UNREADABLE_CODES[ArgumentsTooNew]
    clock.close()
