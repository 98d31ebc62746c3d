"""Shapes of values: what passes, what does not, and the normal form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from fencerow.demo.fields import extract
from tests.demo.pdfs import pdf, text


def read(tmp_path: Path, *lines: str) -> list[tuple[str, str, str | None]]:
    """Fields of a page with these lines, but not its title."""
    file = tmp_path / "page.pdf"
    file.write_bytes(pdf(text(*lines)))
    return [(f.name, f.value, f.normal) for f in extract(file).fields if f.name != "title"]


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("paid to DE79 0000 0000 1234 5678 90.", [
            ("iban", "DE79 0000 0000 1234 5678 90", "DE79000000001234567890")]),
        ("Invoice no. A-1 of 3 May 2026", [
            ("invoice_number", "A-1", None), ("date", "3 May 2026", "2026-05-03")]),
        ("Total due: 1,234.50", [("total_due", "1,234.50", "1234.50")]),
        ("Total due: 1'234.50 CHF", [("total_due", "1’234.50 CHF", "1234.50")]),
        ("credit of -$12.00, debit of 12.00", [("amount", "-$12.00", "-12.00")]),
        ("due on 03/04/2026 or 23/04/2026", [
            ("due_date", "03/04/2026", None), ("date", "23/04/2026", "2026-04-23")]),
        ("on 31.02.2026, section 1.2.3, version 10.11.12.13", [("date", "31.02.2026", None)]),
        ("a total of five, from the customer to the supplier", []),
        ("Invoice number pending", []),
        ("see http://a.example/x?y=1, or a.b+c@d.example.", [
            ("url", "http://a.example/x?y=1", None), ("email", "a.b+c@d.example", None)]),
    ],
)  # fmt: skip
def test_values_in_a_line(tmp_path: Path, line: str, fields: Sequence[tuple[str, str, str | None]]) -> None:
    assert read(tmp_path, line) == list(fields)


def test_an_iban_with_a_wrong_digit_is_none(tmp_path: Path) -> None:
    names = [name for name, _, _ in read(tmp_path, "IBAN: DE79 0000 0000 1234 5678 91")]
    assert "iban" not in names


def test_a_table_of_contents_has_no_headings(tmp_path: Path) -> None:
    file = tmp_path / "page.pdf"
    large = "BT /F 16 Tf 30 100 Td (Indices . . . . . . 32) Tj ET BT /F 16 Tf 30 60 Td (Indices) Tj ET"
    title = "BT /F 30 Tf 30 160 Td (Title) Tj ET"
    file.write_bytes(pdf(text("Contents of a page", "with a lot of words on it") + title + large))
    assert [f.value for f in extract(file).fields if f.name == "heading"] == ["Indices"]


def test_a_value_repeated_is_kept_once(tmp_path: Path) -> None:
    assert len(read(tmp_path, "Total due 5.00 EUR", "Total due 5.00 EUR")) == 1
