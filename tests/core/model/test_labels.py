"""Tags, metadata and headers: small, clean, and absent when empty."""

from __future__ import annotations

import json

import pytest

from fencerow.core.model.labels import encode_headers, encode_metadata, encode_tags
from fencerow.errors import InvalidInput, InvalidPayload, PayloadTooLarge


def test_nothing_is_kept_as_nothing() -> None:
    assert encode_tags([]) is None
    assert encode_metadata({}) is None
    assert encode_headers({}) is None


def test_tags_are_kept_once_each_in_their_order() -> None:
    assert encode_tags(["b", "a", "b"]) == '["b","a"]'


@pytest.mark.parametrize("tags", ["ab", ["x" * 101], [""], [1], ["a\n"], [str(n) for n in range(65)]])
def test_bad_tags_are_refused(tags: list[str]) -> None:
    with pytest.raises(InvalidInput):
        encode_tags(tags)


def test_64_tags_of_100_characters_are_kept() -> None:
    tags = [f"{n:0100}" for n in range(64)]

    assert json.loads(encode_tags(tags) or "") == tags


def test_metadata_obeys_the_rules_of_payloads() -> None:
    assert encode_metadata({"a": [1, None]}) == '{"a":[1,null]}'
    with pytest.raises(InvalidPayload, match=r"metadata\.a\[1\] is NaN"):
        encode_metadata({"a": [1, float("nan")]})
    with pytest.raises(InvalidInput):
        encode_metadata({1: 2})  # type: ignore[dict-item]
    with pytest.raises(InvalidInput):
        encode_metadata([("a", 1)])  # type: ignore[arg-type]


def test_large_metadata_and_headers_are_refused() -> None:
    with pytest.raises(PayloadTooLarge):
        encode_metadata({"a": "x" * 16_384})
    with pytest.raises(PayloadTooLarge):
        encode_headers({"a": "x" * 16_384})


@pytest.mark.parametrize("headers", [{"a": "b\r\nc: d"}, {"a\n": "b"}, {"a": 1}, {"": "a"}])
def test_headers_cannot_smuggle_lines(headers: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        encode_headers(headers)


def test_a_header_may_be_empty() -> None:
    assert encode_headers({"a": ""}) == '{"a":""}'
