"""What each process makes for itself."""

from __future__ import annotations

import threading

import pytest

from fencerow.db import forks


class Made(forks.MadeAnew):
    def __init__(self) -> None:
        self.times = 0
        self.raced = threading.Event()
        self.other: threading.Thread | None = None

    def _forget(self) -> None:
        self.times += 1
        if threading.current_thread() is self.other:
            self.raced.set()
            return
        self.other = threading.Thread(target=self.used)
        self.other.start()
        self.raced.wait(0.2)  # the other thread comes here where each may make one

    def used(self) -> None:
        self._check_process()


def test_it_is_made_once_in_each_process_by_whichever_thread_uses_it_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Made()
    made.used()
    made.used()
    assert made.times == 1
    monkeypatch.setattr(forks, "_page", forks.EMPTY)
    monkeypatch.setattr(forks, "process", lambda: (0, -1))
    made.used()
    assert made.times == 2
