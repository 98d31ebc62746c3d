"""JSON from strangers: what is taken, what is refused and where, and what it may cost."""

from __future__ import annotations

import json
import sys
import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fencerow.web.errors import InvalidRequest
from fencerow.web.reading.strict import Bounds, plain
from fencerow.web.settings import WebSettings

MIB = 1024 * 1024
SMALL = Bounds(depth_max=3, keys_max=4, items_max=8, name_bytes_max=8, number_digits_max=20)

TAKEN = [
    b"null", b" true\r\n\t", b"0", b"-0", b"-0.0", b"1e2", b"1E+2", b"0.1", b"18446744073709551615",
    b"-9223372036854775808", b"1.7976931348623157e308", b"5e-324", b'""', b'"\\u00e9"', b'"\\ud83d\\ude00"',
    b'"\\\\ud800"', b'"\\\\u0000"', b'"\\"[{,:"', b'"\\\\"', '"é😀\u2028\x7f\ufeff"'.encode(), b"[]", b"{}",
    b'{"":""}', b'{"a":1,"A":2}', b'{"a":{"a":[{"a":1}]}}', b"[[],[[]],{}]", b'{"\\u0061":1}', b'["\\/"]',
    b"0." + b"1" * 62, b'{"' + b"n" * 256 + b'":1}', b"[" * 64 + b"]" * 64, b'["' + b"[" * 70_000 + b'"]',
]  # fmt: skip

# Bytes, and what the refusal says of them.
REFUSED: list[tuple[bytes, str]] = [
    *((each, "no JSON: Expecting value") for each in (
        b"", b" ", b"\0", b"nul", b"True", b"'a'", b"[1,,2]", b"[,]", b"+1", b".5", b"-", b"--1", b"[-]", b"undefined",
        b"<a/>", b"a=b", b"\x0b1", b"\xc2\xa01", b"// x\n1", b"/* x */1", b"[1 , ]",
        b'{"a":}', b'{"a":,}', b"\xe2\x80\xa81", b"[\xef\xbb\xbf1]", b"infinity", b"-inf", b"nan", b"[\x00]",
        "１".encode(), "[١]".encode(), b'\\"[[[[',
    )),
    *((each, "no JSON: Extra data") for each in (
        b"1 2", b"{}{}", b"[]]", b"01", b"-01", b"1.", b"1.e5", b"1e", b"0x1", b"1_000", b"null,", b'"a""b"', b"1\0",
        b"{}\n{}", b'""""', b"1l", b"[]\x00", b"{}]",
    )),
    *((each, "no JSON: Expecting ',' delimiter") for each in (
        b"[1 2]", b"[1", b"[1}", b'{"a":1', b'{"a":1 "b":2}', b"[1:2]", b'["a":1]', b"[[1,2]", b'{"a":1]', b"[1;2]",
    )),
    *((each, "no JSON: Expecting property name") for each in (
        b"{", b"{1:2}", b"{a:1}", b"{'a':1}", b"{null:1}", b"{[]:1}", b"{,}",
    )),
    *((each, "no JSON: Expecting ':' delimiter") for each in (b'{"a"}', b'{"a" 1}', b'{"a","b"}')),
    *((b'"' + each, "no JSON: Unterminated string") for each in (b"", b"a", b'\\"', b"[[[")),
    *((b'"' + each + b'"', "no JSON: Invalid control character") for each in (b"\n", b"\t", b"\0", b"\x1f", b"a\rb")),
    *((b'"\\' + each + b'"', "no JSON: Invalid \\") for each in (
        b"x", b"'", b"0", b"u", b"u12", b"u123g", b"U0001", b"u+123", b"u 123", b"\n", b"u00_1",
    )),
    *((each, "is no UTF-8 from byte") for each in (
        b"\xff", b'"\xe9"', b'"\xc0\x80"', b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xf0\x9f\x98"', b'"\x80"',
        b"\xff\xfe1\0", b"\xfe\xff\0001", b"\x1f\x8b\x08\0", b"PK\x03\x04\xff", b'{"\xf5":1}',
    )),
    (b"\xef\xbb\xbf{}", "byte order mark"),
    *((each, f"is {each.decode()}, which is no JSON") for each in (b"NaN", b"Infinity", b"-Infinity")),
    (b'{"a":[1,NaN]}', "the body.a[1] is NaN"),
    *((each, "is an integer beyond 64 bits") for each in (
        b"18446744073709551616", b"-9223372036854775809", b"1" * 64, b"-" + b"9" * 60,
    )),
    *((each, "is a number of more than 64 characters") for each in (
        b"1" * 65, b"-" + b"1" * 64, b"0." + b"0" * 63, b"1e" + b"0" * 63, b"1" * 5000, b"1." + b"1" * 5000,
    )),
    *((each, "is a number that no float holds") for each in (b"1e309", b"-1e309", b"1e99999", b"1.8e308")),
    (b'[{"b":{"a":1,"a":1}}]', "the body[0].b has the name 'a' twice"),
    (b'{"a":{},"a":{}}', "the body has the name 'a' twice"),
    (b'{"a":1,"\\u0061":1}', "the body has the name 'a' twice"),
    (b'{"":1,"":2}', "the body has the name '' twice"),
    (b'["\\u0000"]', "the body[0] contains NUL at position 0"),
    (b'{"a b":"x\\u0000"}', "the body['a b'] contains NUL at position 1"),
    (b'{"x\\u0000":1}', "has a name, 'x\\x00', that contains NUL"),
    (b'{"a":[0,"\\ud800"]}', "the body.a[1] contains a lone surrogate at position 0"),
    (b'"\\ude00\\ud83d"', "the body contains a lone surrogate"),
    (b'"\\uD83D\\\\uDE00"', "the body contains a lone surrogate"),
    (b'{"\\udfff":1}', "has a name, '\\udfff', that contains a lone surrogate"),
    (b'{"' + b"n" * 257 + b'":1}', "has a name of more than 256 bytes"),
    (('{"' + "é" * 129 + '":1}').encode(), "has a name of more than 256 bytes"),
    (b"[" * 65 + b"]" * 65, "nested deeper than 64 levels"),
    (b'{"a":' * 65 + b"1" + b"}" * 65, "nested deeper than 64 levels"),
]  # fmt: skip


@pytest.mark.parametrize("body", TAKEN, ids=lambda body: ascii(body)[:40])
def test_json_is_read_as_the_standard_library_reads_it(body: bytes) -> None:
    value = plain(body)
    assert (value, repr(value)) == (json.loads(body), repr(json.loads(body)))


@pytest.mark.parametrize(("body", "said"), REFUSED, ids=lambda part: ascii(part)[:40])
def test_what_readers_may_understand_differently_is_refused(body: bytes, said: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        plain(body)
    assert said in refused.value.what
    assert (refused.value.status, refused.value.code) == (400, "FR-858")
    assert len(str(refused.value)) < 500 and str(refused.value).isprintable() is False  # three lines


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"[[[1]]]", None), (b"[[[[1]]]]", "deeper than 3"), (b'{"a":{"a":[[]]}}', "deeper than 3"),
        (b"[[],[],[]]", None), (b'{"a":1,"b":2,"c":3,"d":4}', None),
        (b'[{"a":1,"b":2},{"a":1,"b":2,"c":3}]', "4 names"),
        (b"[1,2,3,4,5,6,7,8]", None), (b"[1,2,3,4,5,6,7,8,9]", "8 values"), (b"[[],[],[],[],[]]", "8 values"),
        (b'["[[[[,,,,,,,,,,::::::"]', None), (b'["\\"[[[[\\\\","[[[[\\\\\\"[[[["]', None), (b'{"12345678":1}', None),
        (b'{"123456789":1}', "8 bytes"), (b'{"123456\xc3\xa9\xc3\xa9":1}', "8 bytes"), (b"12345678901234567890", None),
        (b"123456789012345678901", "20 characters"), (b"]]]]]]]][[[[", "no JSON"), (b"[[[[", "deeper than 3"),
    ],
)  # fmt: skip
def test_amounts_are_counted_outside_of_texts(body: bytes, said: str | None) -> None:
    if said is None:
        assert plain(body, SMALL) == json.loads(body)
        return
    with pytest.raises(InvalidRequest, match=said):
        plain(body, SMALL)


def test_the_settings_bound_names_and_values() -> None:
    bounds = Bounds.of(WebSettings(web_body_keys_max=100, web_body_items_max=1000))
    for body, said in ((NAMES, "more than 100 names"), (full(b"1,"), "more than 1000 values")):
        with pytest.raises(InvalidRequest, match=said):
            plain(body, bounds)


def test_a_place_deep_inside_is_shortened() -> None:
    body = b'{"' + b"long" * 60 + b'":['
    with pytest.raises(InvalidRequest) as refused:
        plain(body * 30 + b"NaN" + b"]}" * 30)
    assert " … " in refused.value.what and len(refused.value.what) < 300


def test_a_refusal_holds_no_part_of_the_body() -> None:
    for body in (
        b'{"a":"s3cret",}',
        b'{"a":"s3cret","a":"s3cret"}',
        b'["s3cret","s3cret\\ud800"]',
        b'"s3cret',
    ):
        with pytest.raises(InvalidRequest) as refused:
            plain(body)
        error = refused.value
        assert "s3cret" not in str(error) and error.__cause__ is None and error.__context__ is None


ANY_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8) | st.text(
    '[]{}:,"\\u0d8 '
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(ANY_TEXT, inner, max_size=5),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=60)
@given(JSON, st.booleans(), st.sampled_from([None, 1]))
def test_whatever_is_json_comes_back_as_it_was(value: Any, escaped: bool, indent: int | None) -> None:
    assert plain(json.dumps(value, ensure_ascii=escaped, indent=indent).encode()) == value


@settings(max_examples=100)
@given(st.text('[]{}:,"\\u0d8e1.-NaI \n\u00e9', max_size=14))
@example('{"a":1,"a":2}')
def test_what_is_taken_means_the_same_to_the_standard_library(text: str) -> None:
    try:
        value = plain(text.encode())
    except InvalidRequest:
        return
    assert value == json.loads(text)


def full(part: bytes, head: bytes = b"[", tail: bytes = b"]", size: int = MIB) -> bytes:
    """A body of that size, of one part again and again."""
    return head + part * (size // len(part)) + tail


NAMES = b"{" + b",".join(b'"%07d":0' % at for at in range(90_000)) + b"}"
BOMBS = [
    b"[" * MIB, b"{" * MIB, full(b'{"a":', b"", b""), full(b"[],"), full(b"{},"), full(b"1,"), full(b'"ab",'), NAMES,
    b'"' * MIB, full(b'",,"'), full(b"][", b"", b""), b":" * MIB, b"\\" * MIB, full(b'\\"', b'"', b'"'), b"\0" * MIB,
    full("😀".encode(), b'"', b'"'), full(b"x", b'"', '😀"'.encode()), full(b"\\u0041", b'"', b'"'), b" " * MIB,
    full(b"\\ud83d\\ude00", b'"', b'\\ud800"'), b"1" * MIB, b"-" + b"1" * MIB, b"0." + b"1" * MIB, b"1e" + b"1" * MIB,
    b'{"' + b"n" * MIB + b'":1}', b"[" + b"{}," * 49_990 + b"{}]", b"[" + b'"abcdef",' * 99_990 + b'""]',
    b"[" + b"1," * 99_990 + b"1]", b"[" + b'"a",' * 90_000 + b'{"a":1,"a":2}]', b"[" * 64 + b"1" + b"]" * 64,
]  # fmt: skip


@pytest.mark.parametrize("body", BOMBS, ids=lambda body: ascii(body[:12]))
def test_a_bomb_costs_memory_in_proportion_to_the_longest_body(body: bytes) -> None:
    tracemalloc.start()
    try:
        plain(body)
    except InvalidRequest:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 10 * MIB


@pytest.mark.parametrize(
    "part", [b"[", b'{"a":', b"[],", b'"a",', b'",,"', b"1", b'\\"', b'"\\ud83d\\ude00",', b"9.9,"]
)
def test_steps_grow_with_the_length_of_a_body_and_not_with_its_square(part: bytes) -> None:
    bounds = Bounds(items_max=10**6, keys_max=10**6, number_digits_max=4000)

    def steps(size: int) -> int:
        counted = 0

        def count(*_: object) -> None:
            nonlocal counted
            counted += 1

        sys.setprofile(count)
        try:
            plain(full(part, size=size), bounds)
        except InvalidRequest:
            pass
        finally:
            sys.setprofile(None)
        return counted

    assert steps(16_000) < 5 * steps(4_000) + 100
