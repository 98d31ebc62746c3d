"""The mark `held`: plays of a race in which a statement waits between its snapshot and its change."""

from __future__ import annotations

from collections.abc import Sequence

import pytest


@pytest.hookimpl(tryfirst=True)  # before -m looks at the marks
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and "held" in _parameters(item):
            item.add_marker(pytest.mark.held)


def _parameters(item: pytest.Function) -> Sequence[object]:
    return list(item.callspec.params.values()) if hasattr(item, "callspec") else []
