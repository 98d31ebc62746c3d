"""Every sample's fields and their boxes, against a table and against the pixels of the page."""

from __future__ import annotations

from pathlib import Path

import pypdfium2
import pytest

import fencerow.demo
from fencerow.demo.fields import Box, Extraction, Field, extract
from tests.demo.ink import Ink

SAMPLES = sorted((Path(fencerow.demo.__file__).parent / "samples").glob("*.pdf"))
EXPECTED = Path(__file__).parent / "expected.tsv"

Row = tuple[str, str, str, str, Box]


def expected() -> dict[str, list[Row]]:
    """Columns: sample, name, how, value, normal form, page, left, top, right, bottom."""
    table: dict[str, list[Row]] = {}
    for line in EXPECTED.read_text(encoding="utf-8").splitlines():
        sample, name, how, value, normal, page, *edges = line.split("\t")
        left, top, right, bottom = (float(e) for e in edges)
        table.setdefault(sample, []).append(
            (name, how, value, normal, Box(int(page), left, top, right, bottom))
        )
    return table


TABLE = expected()
FOUND: dict[Path, Extraction] = {}


def found(sample: Path) -> Extraction:
    if sample not in FOUND:
        FOUND[sample] = extract(sample)
    return FOUND[sample]


def near(one: Box, other: Box) -> bool:
    edges = zip(edges_of(one), edges_of(other), strict=True)
    return one.page == other.page and all(abs(a - b) <= 2 for a, b in edges)


def edges_of(box: Box) -> tuple[float, float, float, float]:
    return (box.left, box.top, box.right, box.bottom)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda p: p.stem)
def test_fields_are_those_of_the_table(sample: Path) -> None:
    fields = found(sample).fields
    rows = TABLE[sample.stem]
    assert [(f.name, f.how, f.value, f.normal or "") for f in fields] == [row[:4] for row in rows]
    assert [f.value for f, row in zip(fields, rows, strict=True) if not near(f.box, row[4])] == []


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda p: p.stem)
def test_ink_fills_the_box_to_its_edges(sample: Path) -> None:
    result, ink = found(sample), Ink(sample)
    for field in result.fields:
        pairs = zip(ink.extent(field.box), edges_of(field.box), strict=True)
        assert all(abs(seen - said) <= 1 for seen, said in pairs), field


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda p: p.stem)
def test_pdfium_reads_the_value_inside_the_box(sample: Path) -> None:
    with pypdfium2.PdfDocument(sample) as document:
        for field in found(sample).fields:
            assert inside(document[field.box.page - 1], field) == field.value


def inside(page: pypdfium2.PdfPage, field: Field) -> str:
    """What PDFium reads in a box, which it wants in the page's own space."""
    left, bottom, _, top = page.get_bbox()
    box = field.box
    if page.get_rotation() == 90:
        area = (left + box.top, bottom + box.left, left + box.bottom, bottom + box.right)
    else:
        area = (left + box.left, top - box.bottom, left + box.right, top - box.top)
    return " ".join(page.get_textpage().get_text_bounded(*area).split())


def test_every_row_of_the_table_has_its_sample() -> None:
    assert set(TABLE) == {sample.stem for sample in SAMPLES}


def test_samples_stay_small() -> None:
    assert sum(sample.stat().st_size for sample in SAMPLES) < 600_000


def test_the_long_report_has_pages_to_be_interrupted_in() -> None:
    report = next(s for s in SAMPLES if s.stem == "annual_report")
    assert found(report).pages == 12
