"""Pages of documents as PNG, for a browser: PDFium draws them, and the format needs no more than zlib."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from fencerow.demo import pdfium
from fencerow.demo.reading import DEFAULT

SCALE = 1.5  # pixels of a point: sharp enough to read, and small
SIGNATURE = b"\x89PNG\r\n\x1a\n"
RGB = 2


def page_png(path: Path, number: int) -> bytes | None:
    """A page as a viewer shows it, counted from 1; None if the document has no such page.

    Raises:
        DocumentError: the document cannot be read. OSError: its file cannot.
    """
    with path.open("rb") as file:
        document = pdfium.open_document(file.read(DEFAULT.bytes))
    with pdfium.LOCK:
        try:
            if not 1 <= number <= len(document):
                return None
            page = document.get_page(number - 1)
            bitmap = page.render(scale=SCALE, rev_byteorder=True)
            width, height, stride, channels = bitmap.width, bitmap.height, bitmap.stride, bitmap.n_channels
            raw = bytes(bitmap.buffer)
        finally:
            document.close()
    rows = [_rgb(raw[at * stride : at * stride + width * channels], channels) for at in range(height)]
    return png(width, height, rows)


def _rgb(row: bytes, channels: int) -> bytes:
    if channels == 3:
        return row
    if channels == 1:
        return bytes(each for grey in row for each in (grey, grey, grey))
    found = bytearray(len(row) // channels * 3)
    for each in range(3):
        found[each::3] = row[each::channels]
    return bytes(found)


def png(width: int, height: int, rows: list[bytes]) -> bytes:
    """A picture of rows of RGB."""
    header = struct.pack(">IIBBBBB", width, height, 8, RGB, 0, 0, 0)
    content = zlib.compress(b"".join(b"\0" + row for row in rows), 6)
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", content) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
