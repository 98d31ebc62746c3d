"""What was taken is confirmed once: late, twice, by two, for a stranger, and beside retention."""

from __future__ import annotations

import asyncio

import pytest

from fencerow import Client
from fencerow.core.errors import InvalidInput, NotReady
from fencerow.core.model.ids import new_id
from fencerow.core.store import store
from fencerow.errors import HandoverLost, HandoverNotFound
from fencerow.handovers.handovers import TakeOf, purge, take
from fencerow.testing.clock import DatabaseClock
from tests.core.store.stage import rows
from tests.handovers.stage import end, ids, line, receiver
from tests.kit import jobs
from tests.kit.jobs import AnyEngine


def test_what_is_taken_nobody_else_takes_before_its_lease_is_over(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    (first,) = line(engine, 1)
    end(engine, first)
    dead, bot = receiver(engine), receiver(engine)
    dead.take(lease_s=600)
    assert bot.take() == []
    clock.advance(500)
    assert bot.take() == []

    clock.advance(101)
    (again,) = bot.take()

    assert (again.job_id, again.token) == (first, 2)


def test_a_late_confirmation_holds_while_nobody_took_it_and_is_told_when_somebody_did(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    first, second = line(engine, 2)
    end(engine, first, second)
    bot, other = receiver(engine), receiver(engine)
    (late,) = bot.take(lease_s=60)
    clock.advance(61)
    assert not bot.confirm(late).replay

    (lost,) = bot.take(lease_s=60)
    clock.advance(61)
    (now,) = other.take()
    assert (lost.job_id, now.job_id) == (second, second)
    with pytest.raises(HandoverLost, match="has taken it since"):
        bot.confirm(lost)
    other.confirm(now)
    with pytest.raises(HandoverLost, match="has confirmed it since"):
        bot.confirm(lost)


def test_confirming_twice_says_so_and_changes_nothing(engine: AnyEngine) -> None:
    (first,) = line(engine, 1)
    end(engine, first)
    bot = receiver(engine)
    (taken,) = bot.take()

    answers = [bot.confirm(taken).replay, bot.confirm(taken).replay, bot.confirm(first).replay]

    assert answers == [False, True, True]
    assert bot.take() == []


def test_a_job_is_confirmed_by_its_id_whoever_has_it(engine: AnyEngine) -> None:
    (first,) = line(engine, 1)
    bot = receiver(engine)
    with pytest.raises(NotReady):
        bot.confirm(first)
    end(engine, first)
    (taken,) = bot.take()

    assert not bot.confirm(first).replay

    assert bot.confirm(taken).replay  # it was this take's


def test_unknown_and_foreign_ids_are_refused_with_a_code(engine: AnyEngine) -> None:
    (plain,) = jobs.submit(engine)
    (foreign,) = line(engine, 1, to="mailer")
    end(engine, plain, foreign)
    bot = receiver(engine)
    (theirs,) = receiver(engine, "mailer").take()

    for unknown in (new_id(), plain, foreign, theirs):
        with pytest.raises(HandoverNotFound) as refused:
            bot.confirm(unknown)
        assert refused.value.code == "FR-831"
    with pytest.raises(HandoverNotFound):
        bot.get(foreign)
    with pytest.raises(InvalidInput):
        bot.confirm("no id")

    assert not receiver(engine, "mailer").confirm(theirs).replay


def test_a_released_end_is_free_at_once_or_after_a_while(engine: AnyEngine, clock: DatabaseClock) -> None:
    (first,) = line(engine, 1)
    end(engine, first)
    bot = receiver(engine)
    (taken,) = bot.take()
    assert bot.release(taken)
    assert not bot.release(taken)
    with pytest.raises(HandoverLost):
        bot.confirm(taken)

    (again,) = bot.take()
    bot.release(again, delay_s=30)
    assert bot.take() == []
    clock.advance(31)

    assert ids(bot.take()) == [first]


def test_a_take_whose_answer_was_lost_finds_its_own_again(engine: AnyEngine) -> None:
    (first,) = line(engine, 1)
    end(engine, first)
    taker = TakeOf("bot", new_id(), 60.0)
    (lost,) = engine.run(take(taker, limit=1))

    (found,) = engine.run(take(taker, limit=1))

    assert (found.job_id, found.token) == (first, lost.token)


def test_a_lease_that_was_written_before_the_clock_went_back_is_over(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    (first,) = line(engine, 1)
    end(engine, first)
    bot = receiver(engine)
    bot.take(lease_s=60)
    clock.advance(-3600)

    assert ids(bot.take()) == [first]


def test_an_unconfirmed_end_outlives_its_job_and_a_confirmed_one_goes_after_it(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    first, second = line(engine, 2)
    end(engine, first, second)
    bot = receiver(engine)
    (taken,) = bot.take()
    bot.confirm(taken)
    clock.advance(100_000)
    engine.run(purge(0, age_s=86_400.0, limit=100))
    assert bot.confirm(first).replay  # its job is there still

    engine.run(store.delete([first, second]))
    engine.run(purge(0, age_s=86_400.0, limit=100))

    with pytest.raises(HandoverNotFound):
        bot.confirm(first)
    (kept,) = bot.take()
    assert (kept.job_id, kept.result) == (second, {"n": 1})


def test_a_confirmation_in_the_callers_transaction_is_undone_with_it(engine: AnyEngine) -> None:
    (first,) = line(engine, 1)
    end(engine, first)
    bot = receiver(engine)
    (taken,) = bot.take()
    with pytest.raises(RuntimeError), engine.session() as session:
        assert not bot.confirm(taken, connection=session.connection).replay
        raise RuntimeError

    with engine.session() as session:
        assert not bot.confirm(taken, connection=session.connection).replay

    assert rows(engine, "SELECT confirmed_by FROM {handovers}") == [{"confirmed_by": "test"}]


def test_who_waits_hears_of_an_end_and_of_a_confirmation(engine: AnyEngine) -> None:
    first, second = line(engine, 2)

    async def main() -> list[str]:
        bot = Client(engine).handovers("bot")
        waiting = asyncio.create_task(bot.atake(wait_s=30))
        await asyncio.to_thread(end, engine, first)
        await asyncio.to_thread(end, engine, second)
        (one,) = await waiting
        waiting = asyncio.create_task(bot.atake(wait_s=30))
        await bot.aconfirm(one)
        (two,) = await waiting
        await engine.aclose()
        return [one.job_id, two.job_id]

    assert asyncio.run(main()) == [first, second]


def test_an_iterator_gives_one_after_the_other(engine: AnyEngine) -> None:
    first, second = line(engine, 2)
    end(engine, first, second)
    bot = receiver(engine)

    found = []
    for handover in bot:
        found.append(handover.job_id)
        bot.confirm(handover)
        if len(found) == 2:
            break

    assert found == [first, second]


def test_nobody_waits_longer_than_he_says(engine: AnyEngine) -> None:
    assert receiver(engine).take(wait_s=0.01) == []


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 1001}, {"lease_s": 0.5}, {"wait_s": -1}])
def test_a_take_that_cannot_be_is_refused(engine: AnyEngine, wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        receiver(engine).take(**wrong)  # type: ignore[arg-type]
