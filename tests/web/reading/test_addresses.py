"""Which paths and queries are text, by the bytes that came."""

from __future__ import annotations

import contextlib

import pytest

from fencerow.web.errors import InvalidRequest
from fencerow.web.reading.addresses import check_address


@pytest.mark.parametrize(
    ("path", "raw", "query", "fits"),
    [
        ("/\ufffd", None, b"", False),
        ("/\ufffd", b"/%EF%BF%BD", b"a=%EF%BF%BD&b=+", True),
        ("/", b"/", "a=é".encode(), False),
    ],
)
def test_what_a_server_put_into_a_path_is_not_taken_for_it(
    path: str, raw: bytes | None, query: bytes, fits: bool
) -> None:
    with contextlib.nullcontext() if fits else pytest.raises(InvalidRequest):
        check_address({"path": path, "raw_path": raw, "query_string": query})
