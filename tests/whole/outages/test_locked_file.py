"""Another process holds the write lock of the SQLite file for longer than anybody is willing to wait."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fencerow import App, Config
from fencerow.errors import Busy
from tests.kit.pace import slower
from tests.whole.outages.after import check_books
from tests.whole.outages.callers import calling
from tests.whole.outages.locker import locked
from tests.whole.outages.shop import Shop, staffed

pytestmark = pytest.mark.timed

BACK_S = slower(5.0)
LEASE_S = slower(3.0)
LOCKED_S = LEASE_S + 2.0  # longer than the lease and the wait for the lock together


async def test_callers_are_told_to_repeat_and_leases_are_kept(
    sqlite_path: Path, journal: str, report: Callable[[str], None]
) -> None:
    url = f"sqlite:///{sqlite_path}"
    lease = {"lease_s": LEASE_S, "renew_s": 0.5}
    counter, worker = Shop(url, busy_timeout_s=1.0), Shop(url, busy_timeout_s=4.0, **lease)
    await asyncio.to_thread(counter.prepare)
    async with staffed(worker) as (working,), calling(counter) as callers:
        await callers.accepted_more(40)
        holder = working.holder
        async with locked(sqlite_path):
            before = worker.happened["renewed"]
            await asyncio.sleep(LOCKED_S)
            renewed = worker.happened["renewed"] - before
        free_at = time.monotonic()
        back_s = await worker.first_success_after(free_at)
        await callers.accepted_more(40)
        await callers.stop()
        assert working.holder == holder, "it was never declared dead"
        told = await check_books(counter, callers)
    for shop in (counter, worker):
        await shop.app.aclose()

    report(
        f"SQLite ({journal}) locked for {LOCKED_S} s; back after {back_s:.2f} s; {renewed} renewals meanwhile; {told}"
    )
    assert set(callers.errors) == {"Busy"}
    # One may have been on its way before. However slow a machine is, who waits for the lock comes when it is let go.
    assert renewed >= 2, "renewals do not wait for the lock"
    assert back_s < BACK_S


@pytest.mark.prove
async def test_a_stopped_process_holds_the_file_until_it_is_killed(sqlite_path: Path, journal: str) -> None:
    """There is no server that could take its lock away."""
    app = App(f"sqlite:///{sqlite_path}", config=Config(busy_timeout_s=0.5))

    @app.job
    def tidy() -> None: ...

    await tidy.asubmit()
    async with locked(sqlite_path) as holder:
        holder.send_signal(signal.SIGSTOP)
        with pytest.raises(Busy):
            await tidy.asubmit()
        holder.kill()
        await asyncio.to_thread(holder.wait)
        await tidy.asubmit()
    await app.aclose()
