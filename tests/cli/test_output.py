"""Tables keep to the terminal, colours to terminals, and no text of a job leaves its cell."""

from __future__ import annotations

import logging

import pytest

from fencerow.command import layout, output
from fencerow.command.documents import plain
from fencerow.command.layout import Column, folded
from fencerow.command.times import Times, iso, span
from fencerow.core.model.job import Happening
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


ID = "01a2052a-55b6-7557-96da-7eff4c363d8e"
COLUMNS = (
    Column("id"),
    Column("job", least=8),
    Column("n", rank=2),
    Column("empty", rank=1),
    Column("found", least=12, folds=True),
)
ROW = (ID, "extract_invoice_lines", 12345, None, "the file is encrypted and no password was given")


def shown(
    capsys: pytest.CaptureFixture[str], columns: int | None, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    if columns is not None:
        monkeypatch.setenv("COLUMNS", str(columns))
    output.table(COLUMNS, [ROW])
    return capsys.readouterr().out.splitlines()


def test_a_terminal_shows_the_end_of_an_id_and_a_pipe_all_of_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    columns, rows = (Column("id", short=True), Column("job")), [(ID, ID), ("(no id)", "x")]

    output.table(columns, rows)
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    output.table(columns, rows)
    output.table(columns, rows, full=True)

    ids = [line.split("  ")[0] for line in capsys.readouterr().out.splitlines() if "id" not in line.split()]
    assert ids == [ID, "(no id)", "4c363d8e", "(no id)", ID, "(no id)"]


def test_a_column_that_may_be_cut_ends_in_an_ellipsis(
    terminal: None, capsys: pytest.CaptureFixture[str]
) -> None:
    output.table(("id", Column("note", least=8)), [("12345678", "n" * 100)])

    lines = capsys.readouterr().out.splitlines()
    assert [len(line) for line in lines] == [14, 40]
    assert lines[1].endswith("n…")


@pytest.mark.parametrize("columns", range(60, 140, 7))
def test_lines_keep_to_the_width_and_an_id_is_whole(
    terminal: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    lines = shown(capsys, columns, monkeypatch)

    assert all(len(line) <= columns for line in lines[:-1])
    assert lines[1].startswith(ID)
    told = " ".join(line[len(ID) :] for line in lines[1:])
    assert all(word in told for word in ROW[-1].split()), "what folds is not cut"


def test_an_id_is_whole_where_nothing_fits(
    terminal: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert any(ID in line for line in shown(capsys, 10, monkeypatch))


def test_what_says_nothing_is_left_out_first_then_what_matters_least(
    terminal: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    heads = {columns: shown(capsys, columns, monkeypatch) for columns in (140, 73, 62)}

    assert heads[140][0].split() == ["id", "job", "n", "empty", "found"]
    assert heads[73][0].split() == ["id", "job", "n", "found"]
    assert heads[73][-1].strip() != "", "what was left out said nothing, so nothing is told"
    assert heads[62][0].split() == ["id", "job", "found"]
    assert heads[62][-1] == "(n: in a wider terminal, or with --json)"


def test_elsewhere_nothing_is_cut_unless_columns_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = shown(capsys, None, monkeypatch)
    stated = shown(capsys, 80, monkeypatch)
    for nonsense in ("0", "-3", "wide", ""):
        monkeypatch.setenv("COLUMNS", nonsense)
        assert output.width() is None

    assert everything[1].endswith(ROW[-1])
    assert len(everything) == 2
    assert max(map(len, stated)) <= 80


def test_numbers_stand_below_each_other_by_their_last_digit(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("n", "x"), [(7, "a"), (None, "b"), (123, "c")])

    assert capsys.readouterr().out == "  n  x\n  7  a\n  -  b\n123  c\n"


def test_facts_go_on_below_their_value(
    terminal: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output.facts({"job": "send", "arguments": '{"path": "in/2026/11/invoice-17.pdf"}', "left out": None})

    assert capsys.readouterr().out.splitlines() == [
        "job        send",
        'arguments  {"path":',
        '           "in/2026/11/invoice-17.pdf"}',
    ]


def test_what_folds_may_have_a_number_of_lines() -> None:
    column = Column("why", least=8, folds=True, lines=2)

    assert column.written("a few words and then some", 8) == ["a few", "words a…"]
    assert column.written("a few words", 8) == ["a few", "words"]


def test_a_word_that_is_longer_than_the_line_is_broken_wide_characters_too() -> None:
    assert folded("a 日本日本 b", 4) == ["a", "日本", "日本", "b"]
    assert folded("", 4) == [""]
    assert folded(" a  b cd ", 4) == ["a  b", "cd "]


def test_a_long_text_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []
    text = " ".join(["日本"] * 1_000)

    def wide(character: str) -> int:
        measured.append(character)
        return 1

    monkeypatch.setattr(layout, "_wide", wide)

    assert folded(text, len(text)) == [text]
    assert len(measured) <= len(text)


NOW_US = 1_795_383_000_000_000


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.2, "now"),
        (-3, "3 s ago"),
        (119, "in 119 s"),
        (-120, "2 min ago"),
        (7_199, "in 120 min"),
        (-7_200, "2 h ago"),
        (200_000, "in 2 d"),
        (-9e11, "10416667 d ago"),
    ],
)
def test_an_instant_is_told_from_the_databases_clock(seconds: float, told: str) -> None:
    assert Times(NOW_US).when(NOW_US + round(seconds * 1e6)) == told


def test_exact_times_are_iso_in_utc() -> None:
    relative, utc = Times(NOW_US), Times(NOW_US, utc=True)
    us = NOW_US + 1_234_567

    assert relative.full(us) == "2026-11-22T21:30:01Z (in 1 s)"
    assert [utc.when(us), utc.fine(us), utc.full(us)] == [
        "2026-11-22T21:30:01Z",
        "2026-11-22T21:30:01.234Z",
        "2026-11-22T21:30:01.234Z",
    ]
    assert iso(us) == "2026-11-22T21:30:01.234567Z"
    assert relative.when(None) is relative.fine(None) is relative.full(None) is iso(None) is None


def test_only_fields_of_ours_become_iso_times() -> None:
    entry = Happening(at_us=NOW_US, kind="x", attempt=1, detail={"spent_us": 7})

    assert plain([entry]) == [
        {
            "at": "2026-11-22T21:30:00.000000Z",
            "kind": "x",
            "attempt": 1,
            "actor": None,
            "detail": {"spent_us": 7},
        }
    ]


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
        (7_200, "2 h"),
        (7_260, "2 h 1 min"),
        (-90_000, "-1 d 1 h"),
    ],
)
def test_a_span_is_told_in_two_units(seconds: float, text: str) -> None:
    assert span(seconds) == text


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
