"""Remake rental_terms.pdf from its text: `python examples/chatbot/sources/make_pdf.py`.

The same text gives the same bytes.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

HERE = Path(__file__).parent
LINES_PER_PAGE = 40
PAGE = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F 3 0 R >> >>"
FONT = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def pdf(text: str) -> bytes:
    """A PDF with these paragraphs in Helvetica, a page for every LINES_PER_PAGE lines."""
    lines = [line for paragraph in text.split("\n") for line in textwrap.wrap(paragraph, 84) or [""]]
    pages = [lines[start : start + LINES_PER_PAGE] for start in range(0, len(lines), LINES_PER_PAGE)]
    numbers = [4 + 2 * index for index in range(len(pages))]
    kids = " ".join(f"{number} 0 R" for number in numbers)
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>",
        FONT,
    ]
    for number, page in zip(numbers, pages, strict=True):
        content = _drawn(page)
        objects += [
            f"{PAGE} /Contents {number + 1} 0 R >>",
            f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
        ]
    return _file(objects)


def _drawn(lines: list[str]) -> str:
    rows = [f"1 0 0 1 60 {780 - 18 * n} Tm ({_escaped(line)}) Tj" for n, line in enumerate(lines) if line]
    return "\n".join(["BT /F 11 Tf", *rows, "ET"])


def _escaped(line: str) -> str:
    return line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def _file(objects: list[str]) -> bytes:
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode("cp1252")
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    return (
        out
        + f"{end}trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n".encode()
    )


if __name__ == "__main__":
    (HERE / "rental_terms.pdf").write_bytes(pdf((HERE / "rental_terms.src.txt").read_text("utf-8")))
