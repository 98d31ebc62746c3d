"""One look serves all who ask, and a database that does not answer keeps nobody waiting for long."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from fencerow.core.errors import Unavailable
from fencerow.metrics.looker import MetricsLooker
from fencerow.metrics.looking import MetricsSeen
from tests.kit.pace import PATIENCE_S

LONG_S = 3600.0


class Asked:
    """A look that waits until it may end; counts how often it was asked for."""

    def __init__(self) -> None:
        self.times = 0
        self.go = threading.Event()
        self.error: Exception | None = None

    def __call__(self) -> MetricsSeen:
        self.times += 1
        assert self.go.wait(PATIENCE_S)
        if self.error is not None:
            raise self.error
        return MetricsSeen(workers=self.times)


def test_many_who_ask_at_once_share_one_look() -> None:
    asked = Asked()
    looker = MetricsLooker(asked, interval_s=LONG_S, patience_s=PATIENCE_S)

    with ThreadPoolExecutor(5) as threads:
        waiting = [threads.submit(looker.found) for _ in range(5)]
        asked.go.set()
        found = [each.result() for each in waiting]

    assert asked.times == 1
    assert all(each.seen is found[0].seen is not None for each in (*found, looker.found()))


def test_a_look_that_takes_too_long_is_left_out_and_not_asked_for_again() -> None:
    asked = Asked()
    looker = MetricsLooker(asked, interval_s=LONG_S, patience_s=0.01)

    first, second = looker.found(), looker.found()
    asked.go.set()
    while looker.found().seen is None:  # it is under way, and serves whoever asks then
        pass

    assert (first.seen, second.seen, asked.times) == (None, None, 1)
    assert second.took_s >= 0.01


def test_a_database_in_trouble_is_asked_no_more_often_than_one_that_answers() -> None:
    asked = Asked()
    asked.error = Unavailable("it is away")
    asked.go.set()
    looker = MetricsLooker(asked, interval_s=LONG_S, patience_s=PATIENCE_S)

    found = [looker.found() for _ in range(3)]

    assert [each.seen for each in found] == [None] * 3
    assert asked.times == 1
