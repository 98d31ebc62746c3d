"""The parts of a JSON text, however deep they are."""

from __future__ import annotations

import pytest

from fencerow.core.store.decoding import elements, fields

DEEP = '{"n":' * 100_000 + "1" + "}" * 100_000


@pytest.mark.parametrize(
    ("array", "found"),
    [
        ("[]", []),
        ("[ 1 ]", ["1"]),
        ('["a,b", [1, "]"], {"x": ",}"}]', ['"a,b"', '[1, "]"]', '{"x": ",}"}']),
        (r'["\"]", "\\"]', [r'"\"]"', r'"\\"']),
        ("[[], {}, null]", ["[]", "{}", "null"]),
        (f"[1, {DEEP}, 2]", ["1", DEEP, "2"]),
    ],
)
def test_elements_are_what_lies_between_the_outermost_brackets(array: str, found: list[str]) -> None:
    assert elements(array) == found


def test_fields_are_found_by_their_written_names() -> None:
    document = '{"id" : "x", "a\\"b": {"c":[1,2]}, "deep":' + DEEP + ', "text": "a,b:c\\\\"}'

    assert fields(document) == {
        '"id"': '"x"',
        '"a\\"b"': '{"c":[1,2]}',
        '"deep"': DEEP,
        '"text"': '"a,b:c\\\\"',
    }


def test_a_large_text_is_walked_once() -> None:
    text = "x" * 5_000_000

    assert elements(f'["{text}", 1]') == [f'"{text}"', "1"]
