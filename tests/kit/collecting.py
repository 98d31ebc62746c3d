"""Ten thousand tests: what they cost the sweeper of a process once they are collected, and in which order they go."""

from __future__ import annotations

import gc
from collections.abc import Generator
from pathlib import Path

import pytest

# Those that wait most. Each process gets its share in one piece and plays it from the front, and who has nothing left
# takes from the back of another's: what comes first is begun at once, beside others that keep the cores busy meanwhile.
FIRST = ("tests/proof/storm/", "tests/whole/")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A long test that is begun at last is one for which all others wait, on a core that has nothing else to do."""
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """To import all tests for a hundred of real seconds costs more than most of these: read which files have some."""
    if config.getoption("markexpr") != "timed" or not collection_path.match("test_*.py"):
        return None
    return True if "mark.timed" not in collection_path.read_text("utf-8") else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Ten thousand tests and their modules stay to the end: to look for what of them may go is in vain.

    Not while they are collected, which takes a fifth less so, and not afterwards: a full sweep took a quarter of a
    second, and some tests ask for one.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
