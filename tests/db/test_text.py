"""Short texts: what is kept, what is refused, what is safe to print."""

from __future__ import annotations

import pytest

from fencerow.db.text import amount, check_text, clean, kind_and_text, said_of, storable
from fencerow.errors import InvalidInput


def test_ordinary_text_of_every_language_passes() -> None:
    assert check_text("почта-邮件-📬", "a queue name", 20) == "почта-邮件-📬"


@pytest.mark.parametrize("bad", ["", "a\0", "a\ud800", "a\nb", "\x1b[2J", "a\x85", "x" * 21, None, 3, b"x"])
def test_names_that_deceive_or_break_are_refused(bad: object) -> None:
    with pytest.raises(InvalidInput, match="a queue name"):
        check_text(bad, "a queue name", 20)


@pytest.mark.parametrize(("number", "said"), [(0, "0 jobs run"), (1, "1 job runs"), (2, "2 jobs run")])
def test_one_of_a_thing_is_said_as_one(number: int, said: str) -> None:
    assert amount(number, "job runs", "jobs run") == said
    assert amount(number, "slot") == f"{number} slot{'' if number == 1 else 's'}"


def test_notes_may_have_several_lines_but_no_nul() -> None:
    assert check_text("one\n\ttwo", "a note", 20, lines=True) == "one\n\ttwo"
    with pytest.raises(InvalidInput, match=r"U\+0000 at position 1"):
        check_text("a\0", "a note", 20, lines=True)


def test_empty_text_passes_where_it_may() -> None:
    assert check_text("", "a note", 5, empty=True) == ""


def test_any_text_can_be_made_storable() -> None:
    assert storable("a\0b\udfff\n") == "a\ufffdb\ufffd\n"


class _Mute(Exception):
    def __str__(self) -> str:
        raise OSError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("broken pipe"), "RuntimeError: broken pipe"),
        (RuntimeError(), "RuntimeError"),
        (TimeoutError(" "), "TimeoutError"),
        (_Mute(), "_Mute: <no message: str() of this error raised OSError>"),
    ],
)
def test_an_error_says_its_type_and_what_it_has_to_say(error: Exception, said: str) -> None:
    assert said_of(error) == said


def test_what_has_no_type_is_its_text_alone() -> None:
    assert kind_and_text("", "the lease was lost") == "the lease was lost"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 📬", "plain é 📬"),
        ("a\r\nb\tc", "a\\r\\nb\\tc"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("\x9b31m\x7f", "\\x9b31m\\x7f"),
        ("a\u2028b\u202ec\ud800", "a\\u2028b\\u202ec\\ud800"),
    ],
)
def test_nothing_in_a_text_can_forge_a_line_or_move_the_cursor(text: str, shown: str) -> None:
    assert clean(text) == shown
