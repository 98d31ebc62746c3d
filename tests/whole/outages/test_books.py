"""The check of the books is no good unless each wrong entry turns it red."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.whole.outages.after import check_books
from tests.whole.outages.callers import Callers
from tests.whole.outages.shop import Shop, staffed

# What could go wrong, as an entry made by hand: in the tables or in the callers' own books.
ENTRIES = {
    "a lost job": "DELETE FROM fencerow_finished_jobs WHERE args = '{\"n\":1}'",
    "a second job": """UPDATE fencerow_finished_jobs SET args = '{"n":1}' WHERE args = '{"n":2}'""",
    "a lost effect": "DELETE FROM paid WHERE n = 1",
    "a second effect": "INSERT INTO paid VALUES (1, 2)",
    "a failed job": "UPDATE fencerow_finished_jobs SET state = 'failed' WHERE args = '{\"n\":1}'",
    "a broken invariant": "UPDATE fencerow_finished_jobs SET failures = 9 WHERE args = '{\"n\":1}'",
}


@pytest.fixture
async def callers(sqlite_path: Path) -> Callers:
    """Two payments, made and found right."""
    shop = Shop(f"sqlite:///{sqlite_path}")
    shop.prepare()
    made = Callers(shop)
    async with staffed(shop):
        for number in (1, 2):
            made.accepted[number] = (await shop.pay.asubmit(number)).id
        await check_books(shop, made)
    return made


@pytest.mark.parametrize("entry", ENTRIES)
async def test_a_wrong_entry_in_the_tables_is_found(callers: Callers, entry: str) -> None:
    callers.shop.ask(ENTRIES[entry])
    with pytest.raises(AssertionError):
        await check_books(callers.shop, callers)
    await callers.shop.app.aclose()


@pytest.mark.parametrize("book", ["refused", "doubtful", "wrong"])
async def test_a_wrong_word_to_a_caller_is_found(callers: Callers, book: str) -> None:
    if book == "wrong":
        callers.wrong.append("an error that says nothing")
    elif book == "refused":
        callers.refused[1] = "nothing was stored"
    else:
        callers.doubtful[1] = callers.accepted[2]  # a stranger's id
    with pytest.raises(AssertionError):
        await check_books(callers.shop, callers)
    await callers.shop.app.aclose()
