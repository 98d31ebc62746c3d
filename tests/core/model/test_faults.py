"""The fast look at the bytes: it may suspect too much, never too little."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencerow.core.model.value import deeper_than, suspicious

TEXTS = st.text('[]{}"\\ab\n', max_size=8)
NESTED = st.recursive(
    TEXTS | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=40
)


def depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    return 0


@settings(deadline=None)
@given(NESTED, st.integers(0, 8))
def test_depth_is_measured_between_the_texts(value: Any, levels: int) -> None:
    assert deeper_than(msgspec.json.encode(value), levels) == (depth(value) > levels)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":null}',
        b'"\\u0000"',
        b'{"nan":1}',
        b'{"-inf":1}',
        b"18446744073709551616",
        b"-9223372036854775809",
    ],
)
def test_every_trace_is_suspected(raw: bytes) -> None:
    assert suspicious(raw)


@pytest.mark.parametrize("raw", [b"{}", b'{"a":[1.5,true,"x"]}', b"123456789012345678"])
def test_ordinary_data_is_not(raw: bytes) -> None:
    assert not suspicious(raw)
