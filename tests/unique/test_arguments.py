"""What `unique=True` takes for the same arguments."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow import App


@pytest.mark.parametrize(
    ("one", "other", "answer"),
    [
        ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}, "existing"),
        ([1, 2], [2, 1], "inserted"),
        ({"a": 1}, {"a": 1.0}, "inserted"),
        ({"a": 2**63 - 1}, {"a": 2**63 - 2}, "inserted"),
    ],
)
async def test_dicts_are_the_same_in_whatever_order_their_keys_come(
    app: App, one: Any, other: Any, answer: str
) -> None:
    @app.job(unique=True)
    def index(what: Any) -> None: ...

    assert [(await index.asubmit(each)).answer for each in (one, other)] == ["inserted", answer]
