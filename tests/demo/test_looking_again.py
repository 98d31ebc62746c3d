"""The show goes on after a look at a file that others held for long."""

from __future__ import annotations

import time
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fencerow.demo import show
from fencerow.errors import Busy, FencerowError


class Stub:
    """What the show looks at and shows: looks bring these ends, workers live as long as it is said."""

    def __init__(self, *ends: bool | Exception, is_alive: bool = True) -> None:
        self.ends, self.is_alive, self.live = list(ends), is_alive, nullcontext

    def look(self) -> bool:
        end = self.ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end

    def last_words(self) -> str:
        return "killed"


def watch(monkeypatch: pytest.MonkeyPatch, stub: Stub) -> None:
    at_once = SimpleNamespace(sleep=lambda _pause_s: None, monotonic=time.monotonic)
    monkeypatch.setattr(show, "time", at_once)
    made = cast("Any", object.__new__(show._Show))
    made._view, made._workers, made._look = stub, [stub], stub.look
    made._watch()


def test_the_show_looks_again_where_the_file_was_locked_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    stub = Stub(False, Busy("demo.db stayed locked", "", ""), True)

    watch(monkeypatch, stub)

    assert stub.ends == []


def test_the_show_ends_where_the_file_is_locked_and_nobody_works(monkeypatch: pytest.MonkeyPatch) -> None:
    stub = Stub(Busy("demo.db stayed locked", "", ""), True, is_alive=False)

    with pytest.raises(FencerowError, match="both worker processes ended"):
        watch(monkeypatch, stub)
