"""Who waits for a connection of a pool asks again from time to time, and many do not ask more often than a few."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from psycopg_pool import PoolTimeout

from fencerow.db import pool_wait

WAIT_S, EACH = 5.0, 100


class Empty:
    """A pool that has no connection to give, and so many who wait."""

    def __init__(self, waiting: int) -> None:
        self.waiting, self.asked, self.now = waiting, 0, 1000.0

    def get_stats(self) -> dict[str, int]:
        return {"requests_waiting": self.waiting}

    def getconn(self, timeout_s: float) -> None:
        self.asked, self.now = self.asked + 1, self.now + timeout_s
        raise PoolTimeout


def asked_by_each(waiting: int, monkeypatch: pytest.MonkeyPatch) -> float:
    pool = Empty(waiting)
    monkeypatch.setattr(pool_wait, "time", SimpleNamespace(monotonic=lambda: pool.now))
    for _ in range(EACH):
        began = pool.now
        with pytest.raises(PoolTimeout):
            pool_wait.obtained(cast(Any, pool), lambda _: None, WAIT_S)
        assert pool.now - began == pytest.approx(WAIT_S, abs=0.02)
    return pool.asked / EACH


def test_a_few_ask_again_each_half_second(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked_by_each(10, monkeypatch) >= WAIT_S / pool_wait.WAIT_SLICE_S


def test_hundreds_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a thousand who waited while the processor was short, a few dozen were served: the rest took the time."""
    assert asked_by_each(500, monkeypatch) < 5
