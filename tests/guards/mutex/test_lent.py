"""Guards and advisory locks in the user's own transaction, on a connection of each driver."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from fencerow import Config
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import InvalidInput, MutexBusy, StaleToken, UnusableConnection
from fencerow.guards.mutex import Mutex, aadvisory_lock, advisory_lock, atry_advisory_lock, try_advisory_lock
from fencerow.guards.mutex.advisory import number_of
from tests.db.lenders import Loan
from tests.guards.mutex.test_mutex import elsewhere
from tests.kit.jobs import AnyEngine
from tests.kit.plainly import plainly


@dataclass
class Here:
    """A place without an app."""

    engine: Any
    config: Config = field(default_factory=Config)

    def check_or_create(self) -> None:
        """The tables are there."""


@pytest.fixture
def here(lent_engine: AnyEngine) -> Here:
    return Here(lent_engine)


async def guard(loan: Loan, mutex: Mutex, token: int | None = None) -> None:
    if loan.asynchronous:
        await mutex.aguard(loan.connection, token)
    else:
        mutex.guard(loan.connection, token)


async def lock(loan: Loan, here: Here, *parts: str | int) -> None:
    if loan.asynchronous:
        await aadvisory_lock(here, *parts, connection=loan.connection)
    else:
        advisory_lock(here, *parts, connection=loan.connection)


async def try_lock(loan: Loan, here: Here, *parts: str | int) -> bool:
    if loan.asynchronous:
        return await atry_advisory_lock(here, *parts, connection=loan.connection)
    return try_advisory_lock(here, *parts, connection=loan.connection)


async def test_a_guard_holds_in_the_users_transaction_and_refuses_an_old_token(
    loan: Loan, here: Here
) -> None:
    mutex = Mutex(here, "k")
    elsewhere(mutex.acquire)

    await loan.begin()
    await guard(loan, mutex)
    with pytest.raises(StaleToken):
        await guard(loan, mutex, mutex.token - 1)
    assert await loan.sql(f"SELECT n FROM {loan.table}"), "a refusal must not spoil the transaction"
    await loan.end("COMMIT")

    assert plainly(mutex.release)
    await loan.end("ROLLBACK") if not loan.autocommit else None


async def test_the_next_holder_waits_for_the_guarded_transaction(loan: Loan, here: Here) -> None:
    if isinstance(here.engine, SqliteEngine):
        pytest.skip("a file has one writer: nobody takes anything while this transaction is open")
    mutex = Mutex(here, "k")
    elsewhere(mutex.acquire)

    await loan.begin()
    await guard(loan, mutex)
    assert plainly(mutex.release)
    with pytest.raises(MutexBusy):
        elsewhere(Mutex(here, "k", wait_s=0).acquire)
    await loan.end("COMMIT")

    assert elsewhere(Mutex(here, "k", wait_s=5).acquire) == 2


async def test_where_no_transaction_is_open_nothing_is_locked(loan: Loan, here: Here) -> None:
    if not loan.autocommit:
        pytest.skip("this driver begins the user's transaction with our statement")
    mutex = Mutex(here, "k")
    elsewhere(mutex.acquire)

    for attempt in (guard(loan, mutex), lock(loan, here, "a"), try_lock(loan, here, "a")):
        with pytest.raises(UnusableConnection, match="no transaction"):
            await attempt
    assert plainly(mutex.release)


async def test_a_lock_lasts_as_long_as_the_transaction(loan: Loan, here: Here) -> None:
    await loan.begin()
    await lock(loan, here, "invoice", 7)
    await lock(loan, here, "invoice", 7)
    assert await try_lock(loan, here, "invoice", 8)
    if not isinstance(here.engine, SqliteEngine):
        assert others(here, "invoice", 7) is False
        assert others(here, "invoice", 9) is True
    await loan.end("ROLLBACK")

    assert others(here, "invoice", 7) is True


async def test_on_a_file_a_lock_is_the_write_lock(loan: Loan, here: Here) -> None:
    if not isinstance(here.engine, SqliteEngine):
        pytest.skip("a server has a lock for each name")
    with here.engine.session():
        if loan.autocommit:
            await loan.sql("BEGIN")
        assert not await try_lock(loan, here, "a")
    await loan.end("ROLLBACK") if not loan.autocommit else await loan.sql("ROLLBACK")


def others(here: Here, *parts: str | int) -> bool:
    with here.engine.session() as session:
        return try_advisory_lock(here, *parts, connection=session.connection)


def test_names_are_told_apart() -> None:
    numbers = {
        number_of(("a", "b"), "n"),
        number_of(("ab",), "n"),
        number_of(("a", "b"), "m"),
        number_of((1,), "n"),
        number_of(("1",), "n"),
    }
    assert len(numbers) == 5
    assert all(-(2**63) <= number < 2**63 for number in numbers)


@pytest.mark.parametrize("parts", [(), ("",), (True,), (1.5,), ("a\0",)], ids=repr)
def test_what_is_no_name_is_refused(parts: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidInput):
        number_of(parts, "n")


async def test_a_lock_without_a_connection_is_refused(database: Any) -> None:
    with pytest.raises(UnusableConnection, match="without a transaction"):
        advisory_lock(database, "a", connection=None)
