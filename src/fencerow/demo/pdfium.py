"""The only file that talks to PDFium.

PDFium is not thread-safe, not even across documents: every call in here is made
under one lock for the whole process. The lock is never held while the caller works
on a page.
"""

from __future__ import annotations

import ctypes
import math
import threading
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pypdfium2
from pypdfium2 import raw

from fencerow.demo.layout import Glyph
from fencerow.demo.model import Box, DocumentError, Size

# Re-entrant: the garbage collector may close an abandoned document on a thread that holds it.
LOCK: Final = threading.RLock()

_HYPHENS: Final = {0x02, 0xFFFE}  # what PDFium reports for a hyphen at the end of a line


@dataclass(frozen=True, slots=True)
class PageFrame:
    """How a page is shown: its visible box in the page's own space, and its rotation."""

    left: float
    bottom: float
    right: float
    top: float
    rotation: int

    def size(self) -> Size:
        across, up = self.right - self.left, self.top - self.bottom
        return Size(up, across) if self.rotation in (90, 270) else Size(across, up)

    def shown(self, x: float, y: float) -> tuple[float, float]:
        """The point as a viewer shows it, from the top left corner."""
        if self.rotation == 90:
            return y - self.bottom, x - self.left
        if self.rotation == 180:
            return self.right - x, y - self.bottom
        if self.rotation == 270:
            return self.top - y, self.right - x
        return x - self.left, self.top - y


def open_document(data: bytes) -> Any:
    """The caller closes it, under `LOCK`."""
    try:
        with LOCK:
            return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        # The code alone may be left over from another document: PDFium does not always set it.
        locked = error.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY)
        if locked and b"/Encrypt" in data:
            raise DocumentError("encrypted", "the document asks for a password") from error
        raise DocumentError("damaged", "the file cannot be parsed as a PDF") from error


def read_page(document: Any, index: int, most: int) -> tuple[Size, list[Glyph]]:
    """At most `most` characters of one page, whose handles are closed on return."""
    with LOCK:
        try:
            page = document.get_page(index)
        except pypdfium2.PdfiumError as error:
            raise DocumentError("damaged", f"page {index + 1} cannot be loaded") from error
        try:
            left, bottom, right, top = page.get_bbox()
            frame = PageFrame(left, bottom, right, top, page.get_rotation())
            return frame.size(), _text(page, frame, index + 1, most)
        except pypdfium2.PdfiumError as error:
            raise DocumentError("damaged", f"page {index + 1} has no readable text") from error
        finally:
            page.close()


def _text(page: Any, frame: PageFrame, number: int, most: int) -> list[Glyph]:
    text = page.get_textpage()
    try:
        return list(_glyphs(text.raw, min(text.count_chars(), most), frame, number))
    finally:
        text.close()


def _glyphs(text: Any, count: int, frame: PageFrame, number: int) -> Iterator[Glyph]:
    index = 0
    while index < count:
        shown, width = _character(text, index, count)
        if shown is None or shown.isspace():
            yield Glyph(" ", None, 0.0, 0.0, True)
        elif shown:
            yield _placed(text, index, shown, frame, number)
        index += width


def _character(text: Any, index: int, count: int) -> tuple[str | None, int]:
    """The character, and how many of PDFium's it takes: a surrogate pair is two of them."""
    code = raw.FPDFText_GetUnicode(text, index)
    if code in _HYPHENS:
        return "-", 1
    if 0xD800 <= code < 0xDC00 and index + 1 < count:
        low = raw.FPDFText_GetUnicode(text, index + 1)
        if 0xDC00 <= low < 0xE000:
            return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)), 2
    if code < 0x20 or 0xD800 <= code < 0xE000:
        return (None if code in (0x09, 0x0A, 0x0D) else ""), 1
    letter = chr(code)
    return (unicodedata.normalize("NFKC", letter) if 0xFB00 <= code <= 0xFB06 else letter), 1


def _placed(text: Any, index: int, shown: str, frame: PageFrame, number: int) -> Glyph:
    west, east, south, north = (ctypes.c_double() for _ in range(4))
    if not raw.FPDFText_GetCharBox(text, index, west, east, south, north):
        return Glyph(" ", None, 0.0, 0.0, True)
    x, y = ctypes.c_double(), ctypes.c_double()
    raw.FPDFText_GetCharOrigin(text, index, x, y)
    size, angle = _font(text, index)
    one = frame.shown(west.value, north.value)
    two = frame.shown(east.value, south.value)
    # Hundredths of a point are finer than any print, and keep results short as JSON.
    left, right = sorted(round(x, 2) for x in (one[0], two[0]))
    top, bottom = sorted(round(y, 2) for y in (one[1], two[1]))
    box = Box(number, left, top, right, bottom)
    slant = (angle - frame.rotation + 2) % 360
    return Glyph(shown, box, frame.shown(x.value, y.value)[1], size, slant < 4)


def _font(text: Any, index: int) -> tuple[float, float]:
    """Size as shown and direction in degrees: the nominal size is often 1, scaled by the matrix."""
    matrix = raw.FS_MATRIX()
    nominal = float(raw.FPDFText_GetFontSize(text, index))
    if not raw.FPDFText_GetMatrix(text, index, matrix):
        return nominal, 0.0
    return nominal * math.hypot(matrix.c, matrix.d), math.degrees(math.atan2(matrix.b, matrix.a))
