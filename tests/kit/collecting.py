"""Collecting the tests costs each process of a run some seconds: a fifth less where nothing is swept meanwhile."""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Ten thousand tests and their modules stay to the end: to look for what of them may go is in vain."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
