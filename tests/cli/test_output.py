"""Tables keep to the terminal, colours to terminals, and no text of a job leaves its cell."""

from __future__ import annotations

import logging

import pytest

from fencerow.command import output
from fencerow.logs import ConsoleFormatter, JsonFormatter


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of forty columns that knows colours."""
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_columns_are_aligned_also_with_wide_characters(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("a", "b"), [("日本", 1), ("x", 2), ("e\u0301", 3)])

    assert capsys.readouterr().out == "a     b\n日本  1\nx     2\ne\u0301     3\n"


def test_on_a_terminal_the_widest_column_is_cut(terminal: None, capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("id", "note"), [("12345678", "n" * 100)])

    lines = capsys.readouterr().out.splitlines()
    assert [len(line) for line in lines] == [14, 40]
    assert lines[1].endswith("n…")


def test_elsewhere_nothing_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("id", "note"), [("1", "n" * 300)])

    assert "n" * 300 in capsys.readouterr().out


def test_states_are_coloured_on_a_terminal_unless_told_not_to(
    terminal: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output.table(("state",), [("failed",)])
    coloured = capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    output.table(("state",), [("failed",)])
    plain = capsys.readouterr().out

    assert "\x1b[31mfailed\x1b[0m" in coloured
    assert plain == "state\nfailed\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (9.96, "10.0 s"),
        (59, "59 s"),
        (61, "1 min 1 s"),
        (7_260, "2 h 1 min"),
        (-90_000, "-1 d 1 h"),
    ],
)
def test_a_span_is_told_in_two_units(seconds: float, text: str) -> None:
    assert output.span(seconds) == text


def record(message: str) -> logging.LogRecord:
    made = logging.LogRecord("fencerow.worker", logging.ERROR, __file__, 1, message, (), None)
    made.job_id, made.attempt = "7\n8", 2
    return made


def test_a_console_line_holds_one_event() -> None:
    lines = ConsoleFormatter().format(record("first\x1b[2J\n00:00:00.000 INFO forged")).splitlines()

    assert lines[0].endswith("ERROR    first\\x1b[2J  job_id=7\\n8 attempt=2")
    assert lines[1] == "    00:00:00.000 INFO forged"


def test_a_json_line_holds_one_event() -> None:
    text = JsonFormatter().format(record("first\x1b[2J\nsecond"))

    assert "\n" not in text
    assert "\x1b" not in text
