"""Remake the sample documents: `python tools/samples/make.py` from the repository's root.

Needs `pip install typst==0.15.2 pypdf font-source-sans-pro==0.0.1`. The same versions give
the same bytes: typst is given a fixed time and only the fonts named in the README.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import font_source_sans_pro  # type: ignore[import-untyped]
import typst
from pypdf import PdfReader, PdfWriter
from pypdf.generic import RectangleObject

SOURCES = Path(__file__).parent
SAMPLES = SOURCES.parents[1] / "src" / "fencerow" / "demo" / "samples"
WHEN = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)


def compiled(source: Path) -> bytes:
    fonts = [Path(font_source_sans_pro.SourceSansPro).parent]
    made = typst.compile(source, font_paths=fonts, ignore_system_fonts=True, timestamp=WHEN)
    if not isinstance(made, bytes):
        raise TypeError(f"{source.name} did not become one PDF")
    return made


def upright(pdf: bytes) -> bytes:
    """Shown turned: the page is drawn on its side and says so, as scanners and printers do."""

    def turn(writer: PdfWriter) -> None:
        for page in writer.pages:
            page.rotate(90)

    return _changed(pdf, turn)


def cropped(pdf: bytes) -> bytes:
    """Shown without a printer's margin of 40 points."""

    def crop(writer: PdfWriter) -> None:
        for page in writer.pages:
            left, bottom, right, top = (float(n) for n in page.mediabox)
            page.cropbox = RectangleObject((left + 40, bottom + 40, right - 40, top - 40))

    return _changed(pdf, crop)


def _changed(pdf: bytes, change: Callable[[PdfWriter], None]) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(BytesIO(pdf)))
    change(writer)
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


AFTER = {"delivery_note_rotated": upright, "letter_cropped": cropped}


def main() -> None:
    SAMPLES.mkdir(exist_ok=True)
    for source in sorted(SOURCES.glob("*.typ")):
        pdf = compiled(source)
        finish = AFTER.get(source.stem)
        (SAMPLES / f"{source.stem}.pdf").write_bytes(finish(pdf) if finish else pdf)


if __name__ == "__main__":
    main()
