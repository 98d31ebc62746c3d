"""A mutex whose object is gone is given up, also where a strike lands in the callback that does it."""

from __future__ import annotations

import inspect
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from fencerow.guards.mutex import holding
from tests.core.worker.striking import count, struck


class Owner:
    """Something that may be forgotten."""


async def test_it_is_given_up_wherever_it_strikes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter drops what is raised in its callbacks, and calls none twice."""
    given_up: list[object] = []
    hold: Any = SimpleNamespace(key="k", end=lambda: None, is_mine=True)
    monkeypatch.setattr(holding, "_later", given_up.append)

    def path() -> None:
        owner = Owner()
        weakref.finalize(owner, holding._forgotten, hold).atexit = False
        del owner

    below = inspect.unwrap(holding._forgotten).__code__
    landings = sorted(set((await count(path, below)).ours.values()))
    assert landings
    for landing in landings:
        given_up.clear()
        await struck(path, landing, below)
        assert given_up == [hold], landing
